"""A full disk: writes fail with a clear error, reads go on, and when there is room again writes do too."""

import contextlib
import os
import re
import subprocess

import pytest

import helenus

pytestmark = pytest.mark.process

SIZE_MIB = 96


@contextlib.contextmanager
def small_disk(folder):
    """Mounts a tmpfs of SIZE_MIB at `folder`. Skips the test if mounting is not allowed."""
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE_MIB}m", "tmpfs", str(folder)],
                          capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"full disk test: skipped, mounting a tmpfs needs root: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(path):
    """Takes all the room that is left. Returns the bytes taken."""
    with open(path, "ab", buffering=0) as f:
        before = f.tell()
        with contextlib.suppress(OSError):
            while True:
                f.write(b"\0" * (1 << 20))
        with contextlib.suppress(OSError):
            while True:
                f.write(b"\0" * 512)
        return f.tell() - before


SMALL = ["memtable_bytes=8MiB", "log_segment_bytes=1MiB", "log_max_bytes=16MiB", "write_in_flight_bytes=8MiB"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("reserve", ["8MiB", "0"], ids=["reserve", "to the last byte"])
def test_full_disk(tmp_path, reserve):
    with small_disk(tmp_path / "disk") as disk:
        args = [a for s in [*SMALL, f"disk_reserve_bytes={reserve}"] for a in ("--set", s)]
        node = helenus.Node(tmp_path / "node", store=disk / "store", args=args).start()
        try:
            run(node, disk)
        except BaseException:
            print(node.log())
            raise
        finally:
            node.close()


def run(node, disk):
    session = node.connect()
    session.execute("CREATE KEYSPACE f WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE f.t (k int PRIMARY KEY, v blob)")
    insert = session.prepare("INSERT INTO f.t (k, v) VALUES (?, ?)")
    select = session.prepare("SELECT k FROM f.t WHERE k = ?")
    acked = []
    for k in range(200):
        session.execute(insert, (k, os.urandom(1000)))
        acked.append(k)
    fill(disk / "filler")

    refused = None
    for k in range(1000, 80_000):
        try:
            session.execute(insert, (k, os.urandom(4000)))
            acked.append(k)
        except Exception as e:
            refused = e
            break
    assert refused is not None, "a full disk refused nothing"
    assert re.search(r"(?i)space|disk|storage", str(refused)), f"the error does not say why: {refused!r}"
    assert node.alive()

    # reads go on, of all that was acknowledged
    for k in acked[:100] + acked[-100:]:
        assert session.execute(select, (k,)).one().k == k
    assert len(session.execute("SELECT k FROM f.t").all()) >= len(acked)
    with pytest.raises(Exception):
        for k in range(100_000, 100_100):
            session.execute(insert, (k, os.urandom(4000)))
    assert node.alive() and re.search(r"(?i)space|disk", node.log())

    # room again: writes work without a restart
    (disk / "filler").unlink()

    def writes():
        try:
            session.execute(insert, (500_000, b"room"))
            return True
        except Exception:
            return False

    helenus.wait_until(writes, 60, "writes after there is room again", 0.1)
    acked.append(500_000)
    for k in range(600_000, 600_100):
        session.execute(insert, (k, os.urandom(1000)))
        acked.append(k)
    node.close_clients()
    node.restart()
    session = node.connect()
    there = {r.k for r in session.execute("SELECT k FROM f.t")}
    assert set(acked) <= there


@pytest.mark.timeout(120)
@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_start_on_a_full_disk(tmp_path, clean):
    """A node that is started on a full disk serves what it has, and refuses writes until there is room."""
    with small_disk(tmp_path / "disk") as disk:
        args = [a for s in [*SMALL, "disk_reserve_bytes=8MiB"] for a in ("--set", s)]
        node = helenus.Node(tmp_path / "node", store=disk / "store", args=args).start()
        try:
            run_start(node, disk, clean)
        except BaseException:
            print(node.log())
            raise
        finally:
            node.close()


def run_start(node, disk, clean):
    session = node.connect()
    session.execute("CREATE KEYSPACE f WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE f.t (k int PRIMARY KEY, v blob)")
    insert = session.prepare("INSERT INTO f.t (k, v) VALUES (?, ?)")
    for k in range(300):
        session.execute(insert, (k, os.urandom(1000)))
    node.close_clients()
    node.terminate() if clean else node.kill()
    fill(disk / "filler")

    # twice, since the first start may use up what was put by
    for _ in range(2):
        node.start()
        session = node.connect()
        assert {r.k for r in session.execute("SELECT k FROM f.t")} == set(range(300))
        with pytest.raises(Exception) as refused:
            session.execute("INSERT INTO f.t (k) VALUES (1000)")
        assert re.search(r"(?i)space|disk|storage", str(refused.value)), f"the error does not say why: {refused.value!r}"
        node.close_clients()
        node.kill()

    node.start()
    session = node.connect()
    (disk / "filler").unlink()

    def writes():
        try:
            session.execute("INSERT INTO f.t (k) VALUES (1000)")
            return True
        except Exception:
            return False

    helenus.wait_until(writes, 30, "writes after there is room again", 0.1)
    node.close_clients()
    node.restart()
    assert len(node.connect().execute("SELECT k FROM f.t").all()) == 301


@pytest.mark.timeout(300)
@pytest.mark.parametrize("reserve", ["8MiB", "0"], ids=["reserve", "to the last byte"])
def test_a_node_whose_disk_is_full_stops(tmp_path, reserve):
    """Writes that cannot be flushed stay in the log. The node stops without a line for each attempt, and the next start has all acknowledged
    writes.
    """
    with small_disk(tmp_path / "disk") as disk:
        args = [a for s in [*SMALL, "tablet_count=2", f"disk_reserve_bytes={reserve}"] for a in ("--set", s)]
        node = helenus.Node(tmp_path / "node", store=disk / "store", args=args).start()
        try:
            run_stop(node, disk)
        except BaseException:
            print(node.log())
            raise
        finally:
            node.close()


def run_stop(node, disk):
    session = node.connect()
    session.execute("CREATE KEYSPACE f WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE f.t (k int PRIMARY KEY, v blob)")
    insert = session.prepare("INSERT INTO f.t (k, v) VALUES (?, ?)")
    acked = []
    with contextlib.suppress(Exception):
        for k in range(80_000):
            if k == 2000:
                fill(disk / "filler")
            session.execute(insert, (k, os.urandom(4000)))
            acked.append(k)
    assert 2000 <= len(acked) < 80_000, "a full disk refused nothing"
    node.close_clients()
    # A flush that had begun before may have freed parts of the log.
    helenus.wait_until(lambda: fill(disk / "filler") == 0, 30, "a full disk", 0.5)
    assert node.terminate(timeout_s=90) == 0
    log = node.log(100_000)
    assert "stopped" in log.splitlines()[-1], log
    assert "rows in memory were not flushed; they are in the log" in log
    # One of each tablet at most, however often it was tried.
    for words in ("the disk is full: writes are refused", "compactions have failed", "a tablet could not be flushed", "the log could not be cut"):
        assert log.count(words) <= 2, (words, log)

    (disk / "filler").unlink()
    node.start()
    assert {row.k for row in node.connect().execute("SELECT k FROM f.t")} >= set(acked)
