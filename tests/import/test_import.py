"""`helenus import` brings the snapshots of a Cassandra: afterwards, Helenus answers what the Cassandra answered."""

import subprocess

import pytest

import answers
import cassandras
import features
import helenus
from agreement import differences
from importing import kill_import, run_import
from made import COMPACTED, EARLY, MONDAY, made

pytestmark = [pytest.mark.process, pytest.mark.timeout(0)]

SHOWN = 20
KILLS = 10


@pytest.fixture
def node(tmp_path):
    node = helenus.Node(tmp_path / "node").start()
    yield node
    node.close()


def check_agreement(expected, node):
    found = differences(expected, answers.of(node))
    assert not found, f"{len(found)} differences:\n" + "\n".join(found[:SHOWN])


@pytest.fixture(scope="module", autouse=True)
def command():
    if subprocess.run([str(helenus.binary()), "import", "--help"], capture_output=True).returncode != 0:
        pytest.skip("this build has no command `import`")


@pytest.mark.parametrize("release", cassandras.RELEASES, ids=str)
def test_answers_are_those_of_cassandra(release, node):
    data = made(release)
    # In schema.cql of this release, the view is a table.
    more = ["--exclude", f"{features.KEYSPACE}.viewed"] if release.version == "3.11.10" else []
    run_import(node, data.data, "--snapshot", MONDAY, *more)
    check_agreement(data.answers(), node)
    run_import(node, data.data, "--snapshot", MONDAY, "--verify", *more)


def test_view_that_passes_for_a_table_is_refused(node):
    data = made(cassandras.release_named("3.11-md"))
    said = run_import(node, data.data, "--snapshot", MONDAY, "--table", f"{features.KEYSPACE}.viewed", exit_code=1)
    assert "viewed" in said and "--exclude KEYSPACE.VIEW" in said


def test_snapshots_may_come_in_any_order_and_again(node):
    data = made(cassandras.release_named("5.0-oa"))
    # The schema comes from the newest snapshot: an older one lacks columns. Counters are those of the last import.
    for snapshot in (COMPACTED, EARLY, MONDAY, MONDAY):
        run_import(node, data.data, "--snapshot", snapshot, "--counters", "replace")
    check_agreement(data.answers(), node)


def test_killed_imports_go_on(node, tmp_path):
    data = made(cassandras.release_named("5.0-da"))
    state, options = tmp_path / "import.state", ["--snapshot", MONDAY, "--counters", "replace"]
    kills = sum(kill_import(node, data.data, state, *options, "--rate", "0.5") for _ in range(KILLS))
    assert kills == KILLS
    said = run_import(node, data.data, "--state", str(state), *options)
    assert "An interrupted import goes on after" in said
    assert not state.exists()
    check_agreement(data.answers(), node)
