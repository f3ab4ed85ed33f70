"""The names that `from mini_bert.analysis import ...` knows."""

import subprocess
import sys

import pytest

from mini_bert import analysis


@pytest.mark.parametrize("name", analysis.__all__)
def test_a_public_name_is_there(name):
    assert getattr(analysis, name).__name__ == name
    assert getattr(analysis, name).__module__.startswith("mini_bert.analysis.")


def test_a_name_that_is_none_is_refused():
    with pytest.raises(AttributeError, match="no attribute 'examin'"):
        _ = analysis.examin


def test_nothing_is_loaded_before_it_is_asked_for():
    code = ("import sys, mini_bert.analysis\n"
            "assert not [name for name in sys.modules if name.startswith('mini_bert.analysis.')]\n"
            "from mini_bert.analysis import compute_stable_rank\n"
            "assert 'mini_bert.analysis.doctor.doctor' not in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True)
