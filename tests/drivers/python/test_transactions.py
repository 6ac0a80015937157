"""Transactions through the driver: beside other statements on the same rows, prepared, with permissions, traced."""

import threading

import pytest
from cassandra import InvalidRequest, Unauthorized

import helenus
from helenus import SECURED, log_in

THREADS = 4
ADDITIONS = 60


def table(ks, name="t"):
    ks.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v int, w int) WITH transactional_mode = 'full'")


def in_threads(target, ks, work):
    """Calls `work(number, session)` in several threads, each with a session of its own."""
    failures = []

    def guarded(number):
        session = target.connect(ks.keyspace)
        try:
            work(number, session)
        except Exception as error:
            failures.append(repr(error))
        finally:
            session.cluster.shutdown()

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(THREADS)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert failures == []


def test_additions_beside_conditional_statements(target, ks):
    """Every addition counts, whether a transaction makes it or a conditional statement."""
    table(ks)
    ks.execute("INSERT INTO t (k, v) VALUES (1, 0)")
    ks.execute("INSERT INTO t (k, v) VALUES (2, 0)")

    def work(number, session):
        add = session.prepare("BEGIN TRANSACTION UPDATE t SET v += 1 WHERE k = 1; UPDATE t SET v += 1 WHERE k = 2; "
                              "COMMIT TRANSACTION")
        read = session.prepare("SELECT v FROM t WHERE k = ?")
        swap = session.prepare("UPDATE t SET v = ? WHERE k = ? IF v = ?")
        for i in range(ADDITIONS):
            if number % 2 == 0:
                session.execute(add)
                continue
            for key in (1, 2):
                while True:
                    seen = session.execute(read, (key,)).one().v
                    if session.execute(swap, (seen + 1, key, seen)).one().applied:
                        break

    in_threads(target, ks, work)
    assert ks.execute("SELECT v FROM t WHERE k IN (1, 2)").all() == [(THREADS * ADDITIONS,)] * 2


def test_one_of_two_claims_wins(target, ks):
    """Each thread claims a row if another row is free: write skew would let two of them win."""
    table(ks)
    ks.execute("CREATE TABLE wins (k int, who int, PRIMARY KEY (k, who)) WITH transactional_mode = 'full'")
    claim = ("BEGIN TRANSACTION LET a = (SELECT v FROM t WHERE k = ?); LET b = (SELECT v FROM t WHERE k = ?); "
             "IF a IS NULL AND b IS NULL THEN INSERT INTO t (k, v) VALUES (?, 1); "
             "INSERT INTO wins (k, who) VALUES (?, ?); END IF COMMIT TRANSACTION")

    def work(number, session):
        statement = session.prepare(claim)
        for i in range(ADDITIONS):
            pair = (2 * i, 2 * i + 1)
            session.execute(statement, (*pair, pair[number % 2], i, number))

    in_threads(target, ks, work)
    for i in range(ADDITIONS):
        assert len(ks.execute(f"SELECT who FROM wins WHERE k = {i}").all()) == 1


def test_an_index_and_a_view_follow(ks):
    table(ks)
    ks.execute("CREATE INDEX ON t (v)")
    ks.execute("CREATE MATERIALIZED VIEW by_w AS SELECT * FROM t WHERE w IS NOT NULL AND k IS NOT NULL PRIMARY KEY (w, k)")
    ks.execute("BEGIN TRANSACTION INSERT INTO t (k, v, w) VALUES (1, 10, 5); INSERT INTO t (k, v, w) VALUES (2, 10, 5); "
               "COMMIT TRANSACTION")
    assert sorted(row.k for row in ks.execute("SELECT k FROM t WHERE v = 10")) == [1, 2]
    assert sorted(row.k for row in ks.execute("SELECT k FROM by_w WHERE w = 5")) == [1, 2]
    ks.execute("BEGIN TRANSACTION LET a = (SELECT w FROM t WHERE k = 1); DELETE FROM t WHERE k = 1; "
               "UPDATE t SET v -= 3, w = a.w WHERE k = 2; COMMIT TRANSACTION")
    assert [row.k for row in ks.execute("SELECT k FROM t WHERE v = 7")] == [2]
    assert [row.k for row in ks.execute("SELECT k FROM by_w WHERE w = 5")] == [2]
    with pytest.raises(InvalidRequest, match="transactions are disabled on table"):
        ks.execute("BEGIN TRANSACTION SELECT * FROM by_w WHERE w = 5; COMMIT TRANSACTION")


def test_a_later_write_of_a_client_with_a_fast_clock_is_not_hidden(ks):
    """The transaction's timestamp is newer than that of the row, which a client has chosen 30 s ahead."""
    table(ks)
    ahead = int(ks.execute("SELECT to_unix_timestamp(now()) AS t FROM system.local").one().t * 1000) + 30_000_000
    ks.execute(f"INSERT INTO t (k, v, w) VALUES (1, 1, 1) USING TIMESTAMP {ahead}")
    ks.execute("BEGIN TRANSACTION UPDATE t SET v += 1, w = 7 WHERE k = 1; COMMIT TRANSACTION")
    assert ks.execute("SELECT v, w FROM t WHERE k = 1").one() == (2, 7)


def test_a_changed_table_is_planned_again(ks):
    table(ks)
    statement = ks.prepare("BEGIN TRANSACTION LET a = (SELECT * FROM t WHERE k = ?); SELECT a.v; "
                           "IF a IS NULL THEN INSERT INTO t (k, v) VALUES (?, ?); END IF COMMIT TRANSACTION")
    assert ks.execute(statement, (1, 1, 5)).one() == (None,)
    ks.execute("ALTER TABLE t ADD x text")
    assert ks.execute(statement, (1, 1, 6)).one() == (5,)
    ks.execute("ALTER TABLE t WITH transactional_mode = 'off'")
    with pytest.raises(InvalidRequest, match="transactions are disabled on table"):
        ks.execute(statement, (1, 1, 6))


def test_a_trace_shows_the_conditions(ks):
    table(ks)
    result = ks.execute("BEGIN TRANSACTION LET a = (SELECT v FROM t WHERE k = 1); IF a IS NULL THEN "
                        "INSERT INTO t (k) VALUES (1); END IF COMMIT TRANSACTION", trace=True)
    steps = [event.description for event in result.get_query_trace().events]
    assert "Transaction conditions are met" in steps


@pytest.mark.process
def test_each_statement_needs_its_permission(tmp_path):
    server = helenus.Node(tmp_path, args=[*SECURED, "--set", "dynamic_data_masking_enabled=true"]).start()
    try:
        root = log_in(server, "cassandra", "cassandra")
        root.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        for name in "rw":
            root.execute(f"CREATE TABLE k.{name} (k int PRIMARY KEY, v int MASKED WITH DEFAULT) "
                         "WITH transactional_mode = 'full'")
        root.execute("CREATE ROLE ann WITH PASSWORD = 'x' AND LOGIN = true")
        ann = log_in(server, "ann", "x")
        copy = ("BEGIN TRANSACTION LET a = (SELECT k FROM k.r WHERE k = 1); INSERT INTO k.w (k, v) VALUES (1, 1); "
                "COMMIT TRANSACTION")
        with pytest.raises(Unauthorized, match="SELECT permission on <table k.r>"):
            ann.execute(copy)
        root.execute("GRANT SELECT ON k.r TO ann")
        with pytest.raises(Unauthorized, match="MODIFY permission on <table k.w>"):
            ann.execute(copy)
        root.execute("GRANT MODIFY ON k.w TO ann")
        ann.execute(copy)
        with pytest.raises(Unauthorized, match="SELECT permission on <table k.w>"):
            ann.execute("BEGIN TRANSACTION UPDATE k.w SET v += 1 WHERE k = 1; COMMIT TRANSACTION")
        masked = "BEGIN TRANSACTION LET a = (SELECT v FROM k.r WHERE k = 1); SELECT a.v; COMMIT TRANSACTION"
        with pytest.raises(Unauthorized, match="UNMASK"):
            ann.execute(masked)
        root.execute("INSERT INTO k.r (k, v) VALUES (1, 7)")
        shown = "BEGIN TRANSACTION SELECT v FROM k.r WHERE k = 1; COMMIT TRANSACTION"
        assert ann.execute(shown).one() == (0,)
        root.execute("GRANT UNMASK ON k.r TO ann")
        assert ann.execute(masked).one() == (7,) and ann.execute(shown).one() == (7,)
    finally:
        server.close()
