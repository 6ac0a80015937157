"""Unmodified drivers on three nodes: they see them, go where the rows are, and live through the loss of one."""

import itertools
import time

import pytest

import helenus
import programs

pytestmark = pytest.mark.process

DRIVERS = ("python", "java", "go", "node", "rust")
KEYS = 200
names = (f"c{n}" for n in itertools.count(1))
keys = itertools.count(0, KEYS)


@pytest.fixture
def make_program(cluster, toolchains, tmp_path):
    """Starts a driver's program on a keyspace of its own with that replication factor."""
    made = []

    def make(driver, replication_factor, strategy="SimpleStrategy"):
        keyspace = next(names)
        node = cluster.alive()[0]
        session = node.connect()
        factor = "replication_factor" if strategy == "SimpleStrategy" else "datacenter1"
        session.execute(f"CREATE KEYSPACE {keyspace} WITH replication = "
                        f"{{'class': '{strategy}', '{factor}': {replication_factor}}}")
        session.execute(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY, v int)")
        node.close_clients()
        made.append(programs.Program(programs.command(driver, toolchains), node, keyspace, tmp_path / f"{driver}.log"))
        return made[-1]

    yield make
    for program in made:
        program.close()


def share_passed_on(cluster, program):
    """Returns the share of statements that arrived at a node that did not own their row."""
    before = cluster.passed_on()
    program.route(next(keys), KEYS)
    return (cluster.passed_on() - before) / (2 * KEYS)


@pytest.mark.parametrize("strategy", ["SimpleStrategy", "NetworkTopologyStrategy"])
@pytest.mark.parametrize("driver", DRIVERS)
def test_statements_go_where_their_rows_are(cluster, make_program, driver, strategy):
    program = make_program(driver, 1, strategy)
    helenus.wait_until(lambda: program.nodes() == 3, 30, "all three nodes up")
    if driver == "rust":
        program.route(next(keys), KEYS)  # It learns the tablets.
    share = share_passed_on(cluster, program)
    print(f"{driver}, {strategy} 1: {share:.1%} passed on")
    assert share <= 0.02


def test_nodes_join_without_errors(cluster):
    for node in cluster.nodes:
        told = [line for line in node.log(last=10_000).splitlines() if " ERROR " in line or "another process has opened" in line]
        assert not told, told


@pytest.mark.parametrize("driver", DRIVERS)
def test_with_three_replicas(cluster, make_program, driver):
    """A driver that keeps the order of replicas goes to the owner first, and so does one that knows tablets; one that shuffles them finds
    it once in three times."""
    program = make_program(driver, 3)
    helenus.wait_until(lambda: program.nodes() == 3, 30, "all three nodes up")
    if driver == "rust":
        learning = share_passed_on(cluster, program)
        print(f"rust, while it learns the tablets: {learning:.1%} passed on")
        assert 0 < learning < 0.5
    share = share_passed_on(cluster, program)
    print(f"{driver}, 3 replicas: {share:.1%} passed on")
    assert share <= (0.02 if driver in ("python", "go", "rust") else 0.8)


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_node_is_lost_and_comes_back(cluster, make_program, driver):
    program = make_program(driver, 1)
    helenus.wait_until(lambda: program.nodes() == 3, 30, "all three nodes up")
    program.load()
    time.sleep(2)
    victim = cluster.nodes[2]
    victim.kill()
    killed = time.monotonic()
    cluster.wait_settled()
    served = time.monotonic() - killed
    helenus.wait_until(lambda: program.nodes() == 2, 30, "the driver takes two nodes to be up")
    time.sleep(2)
    victim.start()
    cluster.wait_settled()
    helenus.wait_until(lambda: program.nodes() == 3, 30, "the driver takes three nodes to be up again")
    time.sleep(1)
    load = program.stop()
    print(f"{driver}: {load.operations} statements, {load.failures} failed, the longest took {load.worst_ms} ms; "
          f"all tablets had an owner after {served:.1f} s")
    assert load.failures == 0, load.first_failure
    assert load.operations > 100
    # The driver's requests time out by then.
    assert load.worst_ms < 20_000, f"the longest statement took {load.worst_ms} ms"
