"""Units that are off at every token."""

import numpy as np
from hand_built_models import small

from mini_bert.analysis.dynamics.dead_units import Tokens, dead_units


def test_units_count_as_dead_where_no_real_token_turns_them_on():
    model = small()
    model.params["b1_0"][:6] = -1000                          # six of 24 are off whatever comes
    model.params["b1_1"][:] = 1000
    ids = np.array([[2, 5, 6, 3], [2, 7, 3, 0]])
    mask = np.array([[1, 1, 1, 1], [1, 1, 1, 0]], bool)
    shares = dead_units(model, [Tokens(ids, mask)])
    assert shares[0] >= 6 / 24
    assert shares[1] == 0
    each = [dead_units(model, [Tokens(ids[i : i + 1], mask[i : i + 1])])[0] for i in range(2)]
    assert shares[0] <= min(each)                             # more text turns more of them on
    assert dead_units(model, [Tokens(ids[:1], mask[:1]), Tokens(ids[1:], mask[1:])]) == shares
    assert dead_units(model, [Tokens(np.where(mask, ids, 9), mask)]) == shares        # padding does not count
