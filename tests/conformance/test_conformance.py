"""The suite for pytest: each case is a test, run against the shared server (see ../conftest.py)."""

import pytest

from conformance import cases, golden, runner

KNOWN = golden.known_differences()


@pytest.mark.parametrize("case", cases.load(), ids=lambda c: c.name)
def test_case(case, target):
    expected = golden.read(case)
    assert expected is not None, "no golden file: record it first"
    outcomes = runner.run_case(case, target.host, target.port)
    found = [d for d in golden.compare(case, expected, outcomes, KNOWN) if not d.reason]
    text = "\n".join(f"{case.path.name}:{d.line} [{d.kind}] {d.head}\n  - {d.expected}\n  + {d.actual}" for d in found)
    assert not found, "\n" + text
