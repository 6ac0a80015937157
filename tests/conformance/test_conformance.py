"""The suite for pytest: each case of the sample, or with --whole each case, is a test, run against the shared server or one with
passwords and permissions (see ../conftest.py)."""

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


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        found = cases.load(secured="secured" in metafunc.fixturenames)
        chosen = [c for c in found if c.is_for_the_wire or metafunc.config.getoption("--whole")]
        metafunc.parametrize("case", chosen, ids=lambda c: c.name)


def test_each_area_is_in_the_sample():
    area = lambda case: case.path.parent.name
    found = cases.load() + cases.load(secured=True)
    assert {area(c) for c in found} == {area(c) for c in found if c.is_for_the_wire}


def test_case(case, target):
    check(case, target)


@pytest.mark.process
def test_secured_case(case, secured):
    check(case, secured)


def check(case, server):
    expected = golden.read(case)
    assert expected is not None, "no golden file: record it first"
    outcomes = runner.run_case(case, server.host, server.port)
    found = [d for d in golden.compare(case, expected, outcomes, KNOWN) if not d.reason]
    text = "\n".join(f"{case.path.name}:{d.line} [{d.kind}] {d.head}\n  - {d.expected}\n  + {d.actual}" for d in found)
    assert not found, "\n" + text
