"""A clock that is set back: the server's write timestamps do not go back, and reads as of an earlier time do not change."""

import shutil
import struct
import subprocess
import time

import pytest
from cassandra import InvalidRequest

import helenus
from tool import done

pytestmark = pytest.mark.process

# A replacement of the C library's clock, shifted by a number of seconds. The seconds come from a variable, and from a file that may change.
SHIM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile long *seconds;

static void __attribute__((constructor)) begin(void) {
    const char *path = getenv("CLOCK_AHEAD_FILE");
    if (!path) return;
    void *mapped = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, open(path, O_RDONLY), 0);
    if (mapped != MAP_FAILED) seconds = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    const char *ahead = getenv("CLOCK_AHEAD_S");
    int result = syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && clock == CLOCK_REALTIME && ahead) now->tv_sec += atol(ahead);
    if (result == 0 && clock == CLOCK_REALTIME && seconds) now->tv_sec += *seconds;
    return result;
}
"""

YEAR_S = 365 * 24 * 3600


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("a clock that is ahead: skipped, there is no C compiler")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "shim.so", folder / "shim.c"], check=True)
    return str(folder / "shim.so")


def connect(node):
    """Returns a session whose writes have the server's timestamps."""
    session = node.connect()
    session.use_client_timestamp = False
    return session


@pytest.mark.timeout(120)
@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_writes_are_seen_after_the_clock_is_set_back(tmp_path, shim, clean):
    node = helenus.Node(tmp_path, env={"LD_PRELOAD": shim, "CLOCK_AHEAD_S": str(YEAR_S)}).start()
    try:
        session = connect(node)
        session.execute("CREATE KEYSPACE c WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE c.t (k int PRIMARY KEY, v text)")
        session.execute("INSERT INTO c.t (k, v) VALUES (1, 'ahead')")
        session.execute("INSERT INTO c.t (k, v) VALUES (2, 'deleted')")
        session.execute("DELETE FROM c.t WHERE k = 2")
        written_us = session.execute("SELECT writetime(v) AS t FROM c.t WHERE k = 1").one().t
        assert written_us > (time.time() + YEAR_S / 2) * 1e6
        node.close_clients()
        node.terminate() if clean else node.kill()
        node.env = {}
        for round in range(2):
            node.start()
            session = connect(node)
            for k in (1, 2):
                session.execute(f"INSERT INTO c.t (k, v) VALUES ({k}, 'back {round}')")
            rows = {r.k: r for r in session.execute("SELECT k, v, writetime(v) AS t FROM c.t")}
            assert {k: r.v for k, r in rows.items()} == {1: f"back {round}", 2: f"back {round}"}
            assert rows[1].t > written_us
            node.close_clients()
            node.terminate() if clean else node.kill()
    finally:
        node.close()


HOUR_S = 3600
PAST = ["--set", "point_in_time_window=12h"]


def now():
    """Returns a time in ms that is later than all earlier writes and earlier than all later ones."""
    time.sleep(0.005)
    found = int(time.time() * 1000)
    time.sleep(0.005)
    return found


def kept(node):
    """Returns the number of points in time that the history keeps."""
    return len(list(node.store.glob("history/bases/*")))


def table(session):
    session.execute("CREATE KEYSPACE c WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE c.t (k int PRIMARY KEY, v text)")


def put(session, value):
    session.execute(f"INSERT INTO c.t (k, v) VALUES (1, '{value}')")


def read(session, as_of=""):
    return session.execute(f"SELECT v FROM c.t {as_of} WHERE k = 1").one().v


@pytest.mark.timeout(120)
@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_a_run_with_a_clock_ahead_hides_no_later_time(tmp_path, shim, clean):
    """The clock is right, an hour ahead, and right again."""
    node, times = helenus.Node(tmp_path, args=PAST).start(), []
    note = lambda value: times.append((now(), value))
    try:
        session = connect(node)
        table(session)
        helenus.wait_until(lambda: kept(node), 20, "a moment is kept", 0.1)
        put(session, "before")
        note("before")
        for ahead in (True, False):
            cuts = kept(node)
            node.close_clients()
            node.terminate() if clean else node.kill()
            node.env = {"LD_PRELOAD": shim, "CLOCK_AHEAD_S": str(HOUR_S)} if ahead else {}
            node.start()
            session = connect(node)
            put(session, "ahead" if ahead else "after")
            if not ahead:
                note("after")
            helenus.wait_until(lambda: kept(node) > cuts, 20, "a moment is kept", 0.1)
            session.execute("ALTER TABLE c.t ADD " + ("w int" if ahead else "x int"))
        put(session, "last")
        note("last")
        put(session, "now")
        for at, value in times:
            assert read(session, f"AS OF {at}") == value, value
        assert "x" in session.execute(f"SELECT * FROM c.t AS OF {times[-1][0]}").one()._fields
        assert "w" not in session.execute(f"SELECT * FROM c.t AS OF {times[0][0]}").one()._fields
        with pytest.raises(InvalidRequest, match="the time is in the future"):
            read(session, f"AS OF {now() + HOUR_S * 1000}")
        done(node, "restore", "--as-of", str(times[1][0]), "-kt", "c.t")
        assert read(session) == "after"
        # The log of all of it is cut off, and kept.
        done(node, "flush")
        node.kill()
        node.start()
        session = connect(node)
        done(node, "flush")
        for at, value in times:
            assert read(session, f"AS OF {at}") == value, value
    finally:
        node.close()


@pytest.mark.timeout(120)
def test_clock_ahead_removes_and_hides_nothing(tmp_path, shim):
    """The clock jumps by more than the window, and back."""
    ahead, times = tmp_path / "ahead", []
    ahead.write_bytes(struct.pack("l", 0))
    node = helenus.Node(tmp_path / "node", args=["--set", "point_in_time_window=40s"], env={"LD_PRELOAD": shim, "CLOCK_AHEAD_FILE": str(ahead)}).start()
    note = lambda value: times.append((now(), value))
    try:
        session = connect(node)
        table(session)
        helenus.wait_until(lambda: kept(node), 20, "a moment is kept", 0.1)
        put(session, "before")
        note("before")
        # A clock is believed once it has run for a quarter of the window.
        time.sleep(10)
        put(session, "settled")
        note("settled")
        set_clock(ahead, 2 * HOUR_S)
        put(session, "ahead")
        helenus.wait_until(lambda: "ahead" in read(session), 20, "a write while the clock is ahead")
        # Every five seconds the node checks for points in time that are too old.
        time.sleep(6)
        cuts = kept(node)
        set_clock(ahead, 0)
        put(session, "after")
        note("after")
        helenus.wait_until(lambda: kept(node) > cuts, 20, "a moment is kept when the clock is set back", 0.1)
        put(session, "last")
        note("last")
        put(session, "now")
        for at, value in times:
            assert read(session, f"AS OF {at}") == value, value
    finally:
        node.close()


def set_clock(path, seconds):
    """Changes the file that a node has mapped."""
    with path.open("r+b") as f:
        f.write(struct.pack("l", seconds))
