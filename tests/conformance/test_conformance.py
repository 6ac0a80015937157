"""The suite for pytest: each case is a test. HELENUS_CQL=host:port names the server."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from conformance import cases, golden, runner  # noqa: E402

SERVER = os.environ.get("HELENUS_CQL")
KNOWN = golden.known_differences()


@pytest.mark.skipif(not SERVER, reason="HELENUS_CQL is not set")
@pytest.mark.parametrize("case", cases.load(), ids=lambda c: c.name)
def test_case(case):
    host, _, port = SERVER.rpartition(":")
    expected = golden.read(case)
    assert expected is not None, "no golden file"
    outcomes = runner.run_case(case, host, int(port))
    found = [d for d in golden.compare(case, expected, outcomes, KNOWN) if not d.reason]
    text = "\n".join(f"{d.line} [{d.kind}] {d.head}\n  - {d.expected}\n  + {d.actual}" for d in found)
    assert not found, text
