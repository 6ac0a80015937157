"""Compactions that `helenus compact` does for a node on a bucket."""

import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from cassandra import WriteTimeout

import helenus

pytestmark = pytest.mark.process

ROWS = 400
FAST = ("--set", "compaction_poll_interval=1s")


class Compactor:
    """A `helenus compact` process."""

    def __init__(self, url, folder, environment):
        self.log_path = folder / "compactor.log"
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [str(helenus.binary()), "compact", "--store", url, *FAST, "--set", "log=info,slatedb=info"],
                stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env={**helenus.clean_environment(), **environment})

    def log(self):
        return re.sub(r"\x1b\[[0-9;]*m", "", self.log_path.read_text(errors="replace"))

    def claims(self):
        return self.log().count("claimed compaction")


@pytest.fixture
def compactor(bucket, minio, tmp_path):
    made = []

    def make():
        made.append(Compactor(bucket, tmp_path, minio.environment()))
        return made[-1]

    yield make
    for one in made:
        one.process.kill()
        one.process.wait()


def create(session):
    session.execute("CREATE KEYSPACE c WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE c.t (k int, c int, v text, PRIMARY KEY (k, c))")


def write(session, number):
    """Writes one round of rows and of rows that expire. Deletes a partition and a row."""
    insert = session.prepare("INSERT INTO c.t (k, c, v) VALUES (?, ?, ?)")
    brief = session.prepare("INSERT INTO c.t (k, c, v) VALUES (?, ?, ?) USING TTL 1")
    text = "x" * 2000
    helenus.execute_all(session, insert, [(k, number, text) for k in range(ROWS)])
    helenus.execute_all(session, brief, [(k, 1000 + number, text) for k in range(0, ROWS, 10)])
    session.execute("DELETE FROM c.t WHERE k = %s", (number,))
    session.execute("DELETE FROM c.t WHERE k = %s AND c = %s", (100 + number, number))


def write_through(session, number):
    """Writes one round while the compactor is gone. Level 0 fills until another process compacts, and writes time out meanwhile."""
    def written():
        try:
            write(session, number)
        except WriteTimeout:
            return False
        return True

    helenus.wait_until(written, 40, "writes are acknowledged again")


def expected(numbers):
    rows = set()
    for number in numbers:
        rows |= {(k, number) for k in range(ROWS)}
        rows = {(k, c) for k, c in rows if k != number} - {(100 + number, number)}
    return rows


def found(session):
    return {(row.k, row.c) for row in session.execute("SELECT k, c FROM c.t")}


def has(node, text):
    return text in re.sub(r"\x1b\[[0-9;]*m", "", node.log(5000))


def test_a_compactor_beside_a_node(bucket, nodes, compactor):
    node = nodes(bucket, args=["--set", "tablet_count=1", "--set", "memtable_bytes=4MiB", *FAST, "--set", "log=info,slatedb=info"]).start()
    session = node.connect()
    create(session)
    first = compactor()
    helenus.wait_until(lambda: has(node, "is_present=true"), 40, "the node knows of the compactor")
    number = 0
    deadline = time.monotonic() + 120
    while first.claims() < 2 and time.monotonic() < deadline:
        write(session, number)
        number += 1
        time.sleep(0.5)
    assert first.claims() >= 2, first.log()[-3000:]
    time.sleep(1.5)
    assert found(session) == expected(range(number))

    # Killed in the midst of a compaction, it is not missed for long.
    claims = first.claims()
    deadline = time.monotonic() + 90
    with ThreadPoolExecutor(1) as pool:
        while first.claims() == claims and time.monotonic() < deadline:
            writing = pool.submit(write_through, session, number)
            number += 1
            helenus.wait_until(lambda: writing.done() or first.claims() > claims, 60, "a compaction is claimed", interval_s=0.005)
            if first.claims() > claims:
                first.process.kill()
            writing.result()
    assert first.claims() > claims, first.log()[-3000:]
    first.process.kill()
    first.process.wait()
    began = time.monotonic()
    helenus.wait_until(lambda: has(node, "is_present=false"), 40, "the node knows that the compactor is gone")
    before = node.log(5000).count("claimed compaction")
    while node.log(5000).count("claimed compaction") == before and time.monotonic() - began < 90:
        write_through(session, number)
        number += 1
        time.sleep(0.5)
    assert node.log(5000).count("claimed compaction") > before, node.log()
    time.sleep(1.5)
    assert found(session) == expected(range(number))
    # After a restart, only the compacted files are read.
    node.restart()
    assert found(node.connect()) == expected(range(number))


def test_compactor_stops_cleanly_and_refuses_bad_settings(bucket, nodes, compactor, tmp_path):
    refused = subprocess.run([str(helenus.binary()), "compact", "--store", str(tmp_path / "folder")],
                             capture_output=True, text=True, timeout=60, env=helenus.clean_environment())
    assert refused.returncode != 0 and "a compactor is for stores in a bucket" in refused.stderr
    early = compactor()
    assert early.process.wait(60) != 0
    assert "there is no store" in early.log()
    nodes(bucket).start()
    one = compactor()
    helenus.wait_until(lambda: "Compacts the store" in one.log(), 30, "the compactor runs")
    time.sleep(2)
    one.process.terminate()
    assert one.process.wait(20) == 0, one.log()
