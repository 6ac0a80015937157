"""Transactions with three nodes: over partitions of one owner, and of several."""

import random
import threading

import pytest
from cassandra import OperationTimedOut, Unavailable, WriteTimeout
from cassandra.cluster import NoHostAvailable
from cassandra.policies import WhiteListRoundRobinPolicy

import helenus
from tool import done

pytestmark = pytest.mark.process

KEYS = 300
ADDITIONS = 20

TRANSFER = """BEGIN TRANSACTION
  LET a = (SELECT v FROM x.t WHERE k = ?);
  LET b = (SELECT v FROM x.t WHERE k = ?);
  SELECT a.v, b.v;
  IF a.v >= ? THEN
    UPDATE x.t SET v -= ? WHERE k = ?;
    UPDATE x.t SET v += ? WHERE k = ?;
  END IF
COMMIT TRANSACTION"""


@pytest.fixture(scope="module")
def sessions(cluster):
    """Returns a session for each node, which uses only this node."""
    opened = [node.connect(load_balancing_policy=WhiteListRoundRobinPolicy([node.host])) for node in cluster.nodes]
    opened[0].execute("CREATE KEYSPACE x WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    opened[0].execute("CREATE TABLE x.t (k int PRIMARY KEY, v int) WITH transactional_mode = 'full'")
    insert = opened[0].prepare("INSERT INTO x.t (k, v) VALUES (?, 100)")
    for k in range(KEYS):
        opened[0].execute(insert, (k,))
    return opened


def keys_by_tablet(session):
    """Returns the keys of each tablet, with the tablet's owner."""
    tablets = session.execute("SELECT id, owner, first_token, last_token FROM system_views.tablets").all()
    found = {}
    for row in session.execute("SELECT k, token(k) AS at FROM x.t"):
        tablet = next(t for t in tablets if t.first_token <= row.at <= t.last_token)
        found.setdefault((tablet.owner, tablet.id), []).append(row.k)
    return found


def of_one_owner(session):
    """Returns two keys of different tablets, if a node owns several, otherwise two of one tablet."""
    owners = {}
    for (owner, _), keys in keys_by_tablet(session).items():
        owners.setdefault(owner, []).append(keys)
    several = max(owners.values(), key=len)
    return (several[0][0], several[1][0]) if len(several) > 1 else tuple(several[0][:2])


def values(session, *keys):
    return [session.execute(f"SELECT v FROM x.t WHERE k = {k}").one().v for k in keys]


def transfer(session, a, b, amount):
    prepared = session.prepare(TRANSFER)
    return session.execute(prepared, (a, b, amount, amount, a, amount, b)).one()


def test_every_node_passes_a_transaction_to_its_owner(sessions):
    a, b = of_one_owner(sessions[0])
    before = values(sessions[0], a, b)
    for session in sessions:
        transfer(session, a, b, 10)
    assert values(sessions[1], a, b) == [before[0] - 30, before[1] + 30]


def of_several_owners(session):
    """Returns one key of each node."""
    return list({owner: keys[0] for (owner, _), keys in keys_by_tablet(session).items()}.values())


def test_partitions_of_several_owners_change_together(sessions):
    a, b = of_several_owners(sessions[0])[:2]
    before = values(sessions[0], a, b)
    for session in sessions:
        answer = transfer(session, a, b, 10)
        assert [answer[0], answer[1]] == values_before(before, sessions.index(session))
        # Every node sees both rows after the transfer, as soon as it is acknowledged.
        count = sessions.index(session) + 1
        for other in sessions:
            assert values(other, a, b) == [before[0] - 10 * count, before[1] + 10 * count]


def values_before(first, transfers):
    """Returns the balances before a transfer of 10, of which there were some."""
    return [first[0] - 10 * transfers, first[1] + 10 * transfers]


def test_condition_at_another_owner_is_respected(sessions):
    a, b = of_several_owners(sessions[0])[:2]
    before = values(sessions[0], a, b)
    for session in sessions:
        transfer(session, a, b, 1_000_000)
    assert values(sessions[0], a, b) == before


def test_indexes_and_views_follow_transfers_between_owners(sessions):
    session = sessions[0]
    session.execute("CREATE TABLE x.w (k int PRIMARY KEY, v int) WITH transactional_mode = 'full'")
    session.execute("CREATE INDEX w_v ON x.w (v)")
    session.execute("CREATE MATERIALIZED VIEW x.w_by_v AS SELECT v, k FROM x.w WHERE v IS NOT NULL AND k IS NOT NULL PRIMARY KEY (v, k)")
    keys = of_several_owners(session)
    for v in range(10):
        writes = " ".join(f"INSERT INTO x.w (k, v) VALUES ({k}, {v});" for k in keys)
        sessions[v % len(sessions)].execute(f"BEGIN TRANSACTION {writes} COMMIT TRANSACTION")
        for table in ("w", "w_by_v"):
            found = sessions[(v + 1) % len(sessions)].execute(f"SELECT k FROM x.{table} WHERE v = {v}")
            assert sorted(row.k for row in found) == sorted(keys)
            assert not session.execute(f"SELECT k FROM x.{table} WHERE v = {v - 1}").all()


def test_a_computed_key_stays_the_same_at_the_owner(sessions):
    sessions[0].execute("CREATE TABLE x.u (k uuid PRIMARY KEY, v int) WITH transactional_mode = 'full'")
    for session in sessions:
        for _ in range(5):
            session.execute("BEGIN TRANSACTION INSERT INTO x.u (k, v) VALUES (uuid(), 1); COMMIT TRANSACTION")
    assert len(sessions[0].execute("SELECT k FROM x.u").all()) == 5 * len(sessions)


def test_nodes_lose_no_addition(sessions):
    """Transactions through all nodes add to the same two rows at once."""
    a, b = of_one_owner(sessions[0])
    before = values(sessions[0], a, b)
    failures = []

    def work(session):
        add = session.prepare("BEGIN TRANSACTION UPDATE x.t SET v += 1 WHERE k = ?; UPDATE x.t SET v += 1 WHERE k = ?; "
                              "COMMIT TRANSACTION")
        try:
            for _ in range(ADDITIONS):
                session.execute(add, (a, b))
        except Exception as error:
            failures.append(repr(error))

    threads = [threading.Thread(target=work, args=(session,)) for session in sessions]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert failures == []
    added = ADDITIONS * len(sessions)
    assert values(sessions[0], a, b) == [before[0] + added, before[1] + added]


def test_snapshots_contain_whole_transfers(cluster, sessions):
    """Transfers go on between all nodes while snapshots of all nodes are taken."""
    keys = of_several_owners(sessions[0])
    total = sessions[0].execute("SELECT sum(v) FROM x.t").one()[0]
    is_over = threading.Event()
    done_count, problems = [], []

    def work(session, seed):
        choices = random.Random(seed)
        while not is_over.is_set():
            try:
                a, b = choices.sample(keys, 2)
                transfer(session, a, b, choices.randint(1, 20))
                done_count.append(1)
            except (OperationTimedOut, WriteTimeout):
                # All of them contend for the same rows, on a busy machine.
                pass
            except Exception as error:
                problems.append(repr(error))

    threads = [threading.Thread(target=work, args=(session, seed)) for seed, session in enumerate(sessions * 2)]
    [thread.start() for thread in threads]
    for number in range(5):
        before = len(done_count)
        done(cluster.nodes[number % 3], "snapshot", "-t", f"s{number}", "x")
        helenus.wait_until(lambda: len(done_count) > before + 10, 60, "transfers beside snapshots")
    is_over.set()
    [thread.join() for thread in threads]
    assert problems == []
    for number, session in enumerate([*sessions, *sessions[:2]]):
        assert session.execute(f"SELECT sum(v) FROM x.t AS OF SNAPSHOT s{number}").one()[0] == total


def test_a_killed_owner_leaves_no_part_of_a_transfer(cluster, sessions):
    """Transfers go on between all nodes while one of them is killed. The sum stays the same, at all times and in the end. Run last."""
    keys = sorted({*of_several_owners(sessions[0]), *range(10)})
    total = sum(values(sessions[0], *keys))
    names = ", ".join(map(str, keys))
    read_all = f"BEGIN TRANSACTION SELECT v FROM x.t WHERE k IN ({names}); COMMIT TRANSACTION"
    failed = (OperationTimedOut, Unavailable, WriteTimeout, NoHostAvailable)
    is_over = threading.Event()
    completed, sums, problems = [], [], []

    def work(session, seed):
        choices = random.Random(seed)
        while not is_over.is_set():
            try:
                a, b = choices.sample(keys, 2)
                transfer(session, a, b, choices.randint(1, 20))
                sums.append(sum(row.v for row in session.execute(read_all)))
                completed.append((a, b))
            except failed:
                pass
            except Exception as error:
                problems.append(repr(error))

    threads = [threading.Thread(target=work, args=(session, seed)) for seed, session in enumerate(sessions[:2] * 2)]
    [thread.start() for thread in threads]
    helenus.wait_until(lambda: len(completed) > 20, 60, "transfers")
    cluster.nodes[2].kill()
    before = len(completed)
    helenus.wait_until(lambda: len(completed) > before + 50, 120, "transfers after a node was killed")
    is_over.set()
    [thread.join() for thread in threads]
    assert problems == []
    assert set(sums) == {total}
    assert sum(values(sessions[0], *keys)) == total
