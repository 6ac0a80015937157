"""A clock that is set back: the server's write timestamps do not go back with it."""

import shutil
import subprocess
import time

import pytest

import helenus

pytestmark = pytest.mark.process

# What the C library says of the time, so many seconds later.
SHIM = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    const char *ahead = getenv("CLOCK_AHEAD_S");
    int result = syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && clock == CLOCK_REALTIME && ahead) now->tv_sec += atol(ahead);
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
    """A session whose writes have the server's timestamps."""
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
