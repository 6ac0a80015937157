"""The way back of a move: an Apache Cassandra 5 follows a node of Helenus."""

import pytest

import cassandras
import helenus
from everything import COLUMNS, LATER, ORDER, SOONER, TYPES
from importing import compare
from replicating import KEYSPACE, Replicator

pytestmark = pytest.mark.process

RELEASE = cassandras.release_named("5.0-oa")
# Cassandra gives new ids to the elements of a list.
WITHOUT_LIST = COLUMNS.replace(" l list<int>,", "")


def without_list(statements):
    """Returns statements without the column l."""
    kept = []
    for text in statements:
        if "l[" in text or "SET l =" in text or "(p, q, c, d, l)" in text:
            continue
        kept.append(text.replace(", l, s,", ", s,").replace(", [1, 2, 3], {'a', 'b'}", ", {'a', 'b'}").replace(", l = [9, 9]", "").replace("DELETE s, m, l,", "DELETE s, m,"))
    return kept


@pytest.fixture
def both(tmp_path):
    source = helenus.Node(tmp_path / "source").start()
    target = cassandras.CassandraNode(RELEASE, tmp_path / "target", host="127.0.0.66").start()
    yield source, target
    source.close()
    target.close()


def test_cassandra_follows(both, tmp_path):
    source, target = both
    session = source.connect()
    for statement in [KEYSPACE, *TYPES, f"CREATE TABLE k.everything ({WITHOUT_LIST}) WITH {ORDER} AND cdc = true",
                      "CREATE TABLE k.lists (p int PRIMARY KEY, l list<int>) WITH cdc = true", *without_list(SOONER)]:
        session.execute(statement)
    refused = Replicator(source, target, tmp_path).start()
    assert refused.wait_end() == 1
    assert "k.lists: column l is a list that is not frozen" in refused.log()
    with Replicator(source, target, tmp_path, "--exclude", "k.lists") as replicator:
        for statement in without_list(LATER):
            session.execute(statement)
        session.execute("ALTER TABLE k.everything ADD further text")
        session.execute("UPDATE k.everything SET further = 'x' WHERE p = 1 AND q = 'q' AND c = 1 AND d = 'd'")
        replicator.wait_caught_up(session, "k.everything")
        report = compare(source, target, "--table", "k.everything")
        assert report["equal"] and report["tables"][0]["rows_a"] > 10
        there = target.connect()
        selected = "SELECT s, m, u, further FROM k.everything WHERE p = 1 AND q = 'q'"
        assert session.execute(selected).all() == there.execute(selected).all()
        assert replicator.end() == 0
