"""The summary of a failed run: what was expected, what came, and how to repeat it."""

import os
import pathlib
import shutil
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
FAILING = """
import pytest

@pytest.mark.parametrize("word", ["a b", "c"])
def test_it(word):
    assert word == "c", f"expected c, got {word}"
"""


def run(folder, *words):
    """Runs pytest in a folder with the rules of `tests/`; returns its output. Its results are not counted among those of `./test`."""
    environment = {name: value for name, value in os.environ.items() if name != "HELENUS_TEST_COUNTS"}
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", *words, str(folder)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60).stdout


def test_a_failed_test_is_repeated_by_its_command(tmp_path):
    for file in TESTS.iterdir():
        if file.suffix == ".py" or file.name in ("pytest.ini", "long_tests.txt"):
            shutil.copy(file, tmp_path)
    (tmp_path / "drivers" / "python").mkdir(parents=True)
    (tmp_path / "drivers" / "python" / "test_words.py").write_text(FAILING)
    name = "drivers/python/test_words.py::test_it[a b]"
    summary = run(tmp_path).partition("how to repeat them")[2]
    assert "expected c, got a b" in summary and f"./test python --only '{name}'" in summary, summary
    repeated = run(tmp_path, "--only", name)
    assert "1 failed, 1 deselected" in repeated, repeated
