"""Many requests at once on one connection, answered in any order, each to its own asker."""

import threading

from cassandra.concurrent import execute_concurrent_with_args


def test_thousands_in_flight(ks):
    ks.execute("CREATE TABLE t (k int PRIMARY KEY, v text)")
    insert = ks.prepare("INSERT INTO t (k, v) VALUES (?, ?)")
    results = execute_concurrent_with_args(ks, insert, [(i, f"value {i}") for i in range(5000)], concurrency=1000)
    assert all(r.success for r in results)
    select = ks.prepare("SELECT k, v FROM t WHERE k = ?")
    results = execute_concurrent_with_args(ks, select, [(i,) for i in range(5000)], concurrency=1000)
    for i, (ok, rows) in enumerate(results):
        assert ok and rows.one() == (i, f"value {i}")


def test_small_answers_overtake_large_ones(ks):
    ks.execute("CREATE TABLE big (k int PRIMARY KEY, v blob)")
    insert = ks.prepare("INSERT INTO big (k, v) VALUES (?, ?)")
    for k in range(8):
        ks.execute(insert, (k, bytes([k]) * 2_000_000))
    select = ks.prepare("SELECT v FROM big WHERE k = ?")
    large = [ks.execute_async(select, (k,)) for k in range(8)]
    small = [ks.execute_async("SELECT key FROM system.local") for _ in range(100)]
    assert all(f.result().one().key == "local" for f in small)
    for k, f in enumerate(large):
        assert f.result().one().v == bytes([k]) * 2_000_000


def test_sessions_in_threads(target, ks):
    ks.execute("CREATE TABLE t (k int, c int, PRIMARY KEY (k, c))")
    failures = []

    def work(k):
        try:
            s = target.connect(ks.keyspace)
            insert = s.prepare("INSERT INTO t (k, c) VALUES (?, ?)")
            for c in range(100):
                s.execute(insert, (k, c))
            assert [r.c for r in s.execute("SELECT c FROM t WHERE k = %s", (k,))] == list(range(100))
            s.cluster.shutdown()
        except Exception as e:
            failures.append(repr(e))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert failures == []


def test_paging_while_writing(ks):
    """Rows that were there before a paged read begins are each seen once, whatever is written meanwhile."""
    ks.execute("CREATE TABLE t (k int, c int, PRIMARY KEY (k, c))")
    insert = ks.prepare("INSERT INTO t (k, c) VALUES (?, ?)")
    execute_concurrent_with_args(ks, insert, [(k, c * 2) for k in range(20) for c in range(50)])
    select = ks.prepare("SELECT k, c FROM t")
    select.fetch_size = 17
    seen = []
    for n, row in enumerate(ks.execute(select)):
        seen.append(tuple(row))
        if n % 10 == 0:
            ks.execute(insert, (n % 20, n * 2 + 1))
    even = [r for r in seen if r[1] % 2 == 0]
    assert len(even) == len(set(even)) == 1000
    assert len(seen) == len(set(seen))
