"""Print the Chebyshev coefficients in mini_bert/core/ops/gelu.py, computed with 60 digits.

Needs mpmath (PyTorch brings it along): .venv-parity/bin/python tests/reference/erf_series.py

g(u) = (1 + z) exp(z^2) erfc(z) with u = (z - 5/2) / (z + 5/2) maps z in [0, inf) to u in [-1, 1).
"""

import mpmath as mp

NODES, TERMS, CENTRE = 64, 26, mp.mpf(5) / 2
mp.mp.dps = 60


def scaled_erfc(z: mp.mpf) -> mp.mpf:
    """exp(z^2) erfc(z); far out by its asymptotic series, where erfc itself has lost its digits."""
    if z < 40:
        return mp.exp(z * z) * mp.erfc(z)
    term, total = mp.mpf(1), mp.mpf(0)
    for n in range(18):
        total += term
        term *= -(2 * n + 1) / (2 * z * z)
    return total / (z * mp.sqrt(mp.pi))


def main() -> None:
    angles = [mp.pi * (j + mp.mpf(1) / 2) / NODES for j in range(NODES)]
    values = []
    for angle in angles:
        u = mp.cos(angle)
        z = CENTRE * (1 + u) / (1 - u)
        values.append((1 + z) * scaled_erfc(z))
    for i in range(TERMS):
        coefficient = 2 * mp.fsum(v * mp.cos(i * angle) for v, angle in zip(values, angles, strict=True)) / NODES
        print(float(coefficient / 2 if i == 0 else coefficient))


if __name__ == "__main__":
    main()
