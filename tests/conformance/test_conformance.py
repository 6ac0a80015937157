"""The suite for pytest: each case is a test, run against the shared server or one with passwords and permissions (see ../conftest.py)."""

import pytest

import helenus
from conformance import cases, golden, runner

KNOWN = golden.known_differences()


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    settings = ("authenticator=PasswordAuthenticator", "authorizer=CassandraAuthorizer")
    args = [part for setting in settings for part in ("--set", setting)]
    server = helenus.Node(tmp_path_factory.mktemp("secured"), args=args).start()
    yield server
    server.close()


@pytest.mark.parametrize("case", cases.load(), ids=lambda c: c.name)
def test_case(case, target):
    check(case, target)


@pytest.mark.process
@pytest.mark.parametrize("case", cases.load(secured=True), ids=lambda c: c.name)
def test_secured_case(case, secured):
    check(case, secured)


def check(case, server):
    expected = golden.read(case)
    assert expected is not None, "no golden file: record it first"
    outcomes = runner.run_case(case, server.host, server.port)
    found = [d for d in golden.compare(case, expected, outcomes, KNOWN) if not d.reason]
    text = "\n".join(f"{case.path.name}:{d.line} [{d.kind}] {d.head}\n  - {d.expected}\n  + {d.actual}" for d in found)
    assert not found, "\n" + text
