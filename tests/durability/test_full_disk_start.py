"""A node that is started on a full disk serves what it has, and refuses writes until there is room."""

import os
import re

import pytest

import helenus
from durability.test_full_disk import SMALL, fill, small_disk

pytestmark = pytest.mark.process


@pytest.mark.timeout(120)
@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_start_on_a_full_disk(tmp_path, clean):
    with small_disk(tmp_path / "disk") as disk:
        args = [a for s in [*SMALL, "disk_reserve_bytes=8MiB"] for a in ("--set", s)]
        node = helenus.Node(tmp_path / "node", store=disk / "store", args=args).start()
        try:
            run(node, disk, clean)
        except BaseException:
            print(node.log())
            raise
        finally:
            node.close()


def run(node, disk, clean):
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
