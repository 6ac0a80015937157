"""The log of slow requests: one line for each, with its statement and where its time went."""

import contextlib
import re
import time

import pytest

import helenus

pytestmark = pytest.mark.process

KEYSPACE = "CREATE KEYSPACE s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"


@contextlib.contextmanager
def table(folder, timeout, columns, *args):
    """Yields a node with this timeout and a table s.t, and a session."""
    node = helenus.Node(folder, args=["--set", f"slow_request_log_timeout={timeout}", *args]).start()
    try:
        session = node.connect()
        session.execute(KEYSPACE)
        session.execute(f"CREATE TABLE s.t ({columns})")
        yield node, session
    finally:
        node.close()


def slow_lines(node):
    return [line for line in node.log(10_000).splitlines() if "slow request" in line]


def test_a_slow_request_is_logged(tmp_path):
    with table(tmp_path, "1ms", "k int, c int, v blob, PRIMARY KEY (k, c)") as (node, session):
        insert = session.prepare("INSERT INTO s.t (k, c, v) VALUES (?, ?, ?)")
        for c in range(50):
            session.execute(insert, (1, c, bytes(200_000)))
        asked = 0

        def logged():
            """Reads slowly, and returns the log lines of this read. Slow inserts may have used up the lines of these seconds, so the read is
            repeated.
            """
            nonlocal asked
            session.execute("SELECT * FROM s.t WHERE k = 1 AND c >= 10")
            asked += 1
            return [l for l in slow_lines(node) if "SELECT * FROM s.t WHERE k = ? AND c >= ?" in l]

        lines = helenus.wait_until(logged, what="the line")
        assert len(lines) <= asked, lines
        assert "live_rows=40" in lines[0] and "tombstones=0" in lines[0] and "client=127.0.0.1:" in lines[0]
        assert 'keyspace="s" table="t"' in lines[0]
        total = float(re.search(r"total_ms=([0-9.]+)", lines[0])[1])
        stages = dict(part.split() for part in re.search(r"stages_ms=(.*?) client=", lines[0])[1].split(", "))
        assert stages.keys() <= {"receive", "wait", "parse", "lock", "admission", "log", "read", "owner", "run", "send"}, stages
        assert total > 1 and abs(total - sum(map(float, stages.values()))) < 0.1 * len(stages) + 0.5, lines[0]
        metrics = node.http("/metrics")[1]
        assert int(re.search(r"^helenus_slow_requests_total (\d+)", metrics, re.M)[1]) >= 1


def test_values_are_shown_on_request(tmp_path):
    with table(tmp_path, "1ms", "k int PRIMARY KEY, v text", "--set", "slow_request_log_values=true") as (node, session):
        # A statement that no machine executes in a millisecond.
        session.execute("CREATE FUNCTION s.slowly(k int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS "
                        "$$int n = 0; for (int i = 0; i < 500000; i++) { n += i; } return k;$$")
        insert = "INSERT INTO s.t (k, v) VALUES (s.slowly(1), 'a text')"

        def logged():
            session.execute(insert)
            return [l for l in slow_lines(node) if insert in l]

        helenus.wait_until(logged, what="the line")


def test_lines_are_limited_and_the_others_counted(tmp_path):
    with table(tmp_path, "1ms", "k int, c int, v blob, PRIMARY KEY (k, c)") as (node, session):
        insert = session.prepare("INSERT INTO s.t (k, c, v) VALUES (1, ?, ?)")
        for c in range(60):
            session.execute(insert, (c, bytes(200_000)))
        # 12 MB, which no machine reads in a millisecond.
        slow = "SELECT * FROM s.t WHERE k = 1"
        began = time.monotonic()
        for _ in range(40):
            session.execute(slow)
        took = time.monotonic() - began
        # 20 in five seconds, and those of the table above.
        lines = slow_lines(node)
        assert len(lines) <= 20 * (2 + took // 5 + 1), f"{len(lines)} lines in {took:.1f} s"

        def counted():
            """Returns the lines that count suppressed lines. The next line after a pause has the count."""
            session.execute(slow)
            return [l for l in slow_lines(node) if "suppressed=0" not in l]

        last = helenus.wait_until(counted, what="a count of the others")
        assert int(re.search(r"suppressed=(\d+)", last[-1])[1]) > 0


def test_it_can_be_off(tmp_path):
    with table(tmp_path, "off", "k int PRIMARY KEY") as (node, session):
        assert slow_lines(node) == []
