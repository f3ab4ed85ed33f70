"""The public names of mini_bert.analysis."""

import subprocess
import sys

import pytest

from mini_bert import analysis


@pytest.mark.parametrize("name", analysis.__all__)
def test_public_names_can_be_imported(name):
    assert getattr(analysis, name).__name__ == name
    assert getattr(analysis, name).__module__.startswith("mini_bert.analysis.")


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'examin'"):
        _ = analysis.examin


def test_importing_the_package_or_one_function_does_not_import_the_rest():
    code = ("import sys, mini_bert.analysis\n"
            "assert not [name for name in sys.modules if name.startswith('mini_bert.analysis.')]\n"
            "from mini_bert.analysis import compute_stable_rank\n"
            "assert 'mini_bert.analysis.doctor.doctor' not in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True)
