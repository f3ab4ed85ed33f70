"""Print the coefficients of q in mini_bert/core/ops/gelu.py: Phi(x) = 1 / (1 + exp(x q(x^2))) to float32.

Needs NumPy alone: .venv/bin/python tests/reference/phi_logistic.py

Lawson's method: least squares whose weights grow where the error is large, until the largest errors are alike. What
counts is the error of Phi, which is that of q times x Phi(x) Phi(-x).
"""

from math import erfc, log, sqrt

import numpy as np
from numpy.polynomial import chebyshev, polynomial

END, DEGREE = 5.5, 6


def main() -> None:
    x = np.linspace(1e-3, END, 6000)
    tail = np.array([erfc(v / sqrt(2)) / 2 for v in x])                # Phi(-x)
    q = np.array([log(t / (1 - t)) for t in tail]) / x
    effect = np.maximum(x * tail * (1 - tail), 1e-14)                  # of an error of q on Phi
    powers = chebyshev.chebvander(2 * x * x / END**2 - 1, DEGREE)
    weights = np.ones_like(x)
    for _ in range(200):
        scale = effect * np.sqrt(weights)
        series = np.linalg.lstsq(powers * scale[:, None], q * scale)[0]
        error = np.abs(powers @ series - q) * effect
        weights *= error / error.max() + 1e-12
        weights /= weights.max()
    total, argument = np.zeros(1), np.array([-1, 2 / END**2])          # as powers of x^2
    for coefficient in chebyshev.cheb2poly(series)[::-1]:
        total = polynomial.polyadd(polynomial.polymul(total, argument), [coefficient])
    for coefficient in total[DEGREE::-1]:
        print(float(coefficient))
    print(f"largest error of Phi: {error.max():.1e}")


if __name__ == "__main__":
    main()
