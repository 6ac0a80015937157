"""Transactions with three nodes: they run at the owner of all their partitions, whichever node received them, and are refused for several owners."""

import threading

import pytest
from cassandra import InvalidRequest
from cassandra.policies import WhiteListRoundRobinPolicy

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


def test_partitions_of_several_owners_are_refused(sessions):
    by_owner = {owner: keys[0] for (owner, _), keys in keys_by_tablet(sessions[0]).items()}
    a, b = list(by_owner.values())[:2]
    before = values(sessions[0], a, b)
    for session in sessions:
        with pytest.raises(InvalidRequest, match="of several nodes is not supported yet"):
            transfer(session, a, b, 10)
    assert values(sessions[0], a, b) == before


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
