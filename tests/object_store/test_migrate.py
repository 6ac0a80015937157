"""`helenus migrate`: from a local folder to a bucket, whole, compared, and never over something else."""

import subprocess

import pytest

import helenus
from faulty_proxy import FaultyProxy

pytestmark = pytest.mark.process


def migrate(source, target, environment):
    return subprocess.run(
        [str(helenus.binary()), "migrate", "--from", str(source), "--to", target], text=True, timeout=120,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**helenus.clean_environment(), **environment},
    )


def test_a_local_store_moves_to_a_bucket(bucket, nodes, minio, tmp_path):
    local = helenus.Node(tmp_path / "local").start()
    try:
        session = local.connect()
        session.execute("CREATE KEYSPACE m WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE m.t (p int, c int, v text, s set<int>, PRIMARY KEY (p, c))")
        session.execute("CREATE INDEX ON m.t (v)")
        session.execute("CREATE TABLE m.n (k int PRIMARY KEY, n counter)")
        for p in range(40):
            for c in range(5):
                session.execute("INSERT INTO m.t (p, c, v, s) VALUES (%s, %s, %s, %s)", (p, c, f"v{c}", {p, c}))
            session.execute("UPDATE m.n SET n = n + %s WHERE k = %s", (p, p))
        session.execute("DELETE FROM m.t WHERE p = 3")
        session.execute("DELETE FROM m.t WHERE p = 4 AND c > 2")
        rows = sorted(session.execute("SELECT * FROM m.t"))
        counters = sorted(session.execute("SELECT * FROM m.n"))

        running = migrate(f"file://{local.store}", bucket, minio.environment())
        assert running.returncode != 0 and "in use by another process" in running.stdout, running.stdout
        # Killed, so that some of it is in the log only.
        local.kill()
        done = migrate(f"file://{local.store}", bucket, minio.environment())
        assert done.returncode == 0, done.stdout
        assert "copied and compared" in done.stdout

        again = migrate(f"file://{local.store}", bucket, minio.environment())
        assert again.returncode != 0 and "holds a store already" in again.stdout, again.stdout
        nothing = migrate(tmp_path / "nothing", bucket + "2", minio.environment())
        assert nothing.returncode != 0 and "there is no store" in nothing.stdout, nothing.stdout

        node = nodes(bucket).start()
        session = node.connect()
        assert sorted(session.execute("SELECT * FROM m.t")) == rows
        assert sorted(session.execute("SELECT * FROM m.n")) == counters
        assert sorted(row.p for row in session.execute("SELECT p FROM m.t WHERE v = 'v4'")) == sorted({r.p for r in rows if r.v == "v4"})
        session.execute("INSERT INTO m.t (p, c, v) VALUES (3, 9, 'new')")
        assert [row.c for row in session.execute("SELECT c FROM m.t WHERE p = 3")] == [9]
    finally:
        local.close()


def test_what_was_copied_in_part_is_no_store(bucket, nodes, minio, tmp_path):
    local = helenus.Node(tmp_path / "local").start()
    local.terminate()
    proxy = FaultyProxy(minio.host, minio.port)
    try:
        proxy.rule = lambda method, path: ("refuse", 403) if method == "PUT" and path.endswith("/FORMAT") else None
        done = migrate(f"file://{local.store}", bucket, minio.environment(proxy.endpoint))
        assert done.returncode != 0, done.stdout
        node = nodes(bucket)
        node.start(wait=False)
        assert node.process.wait(40) != 0
        assert "there are tablets below the prefix" in node.log(), node.log()
        again = migrate(f"file://{local.store}", bucket, minio.environment())
        assert again.returncode != 0 and "there are tablets below the prefix" in again.stdout, again.stdout
    finally:
        proxy.close()
        local.close()
