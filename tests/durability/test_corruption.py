"""A corrupt file is reported with its name and never served as data."""

import pathlib
import shutil

import pytest

import helenus

pytestmark = pytest.mark.process

ROWS = 400


def value(k):
    return f"{k}:" + "payload " * 20


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Returns a store with tables flushed by a clean stop, and a log with acknowledged writes from before a kill -9."""
    folder = tmp_path_factory.mktemp("good")
    node = helenus.Node(folder).start()
    session = node.connect()
    session.execute("CREATE KEYSPACE c WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE c.t (k int PRIMARY KEY, v text)")
    insert = session.prepare("INSERT INTO c.t (k, v) VALUES (?, ?)")
    for k in range(ROWS // 2):
        session.execute(insert, (k, value(k)))
    node.close_clients()
    node.terminate()
    node.start()
    session = node.connect()
    insert = session.prepare("INSERT INTO c.t (k, v) VALUES (?, ?)")
    for k in range(ROWS // 2, ROWS):
        session.execute(insert, (k, value(k)))
    node.close()
    return node.store


def data_files(store):
    return [p.relative_to(store) for p in sorted(store.rglob("*")) if p.is_file() and p.stat().st_size >= 64]


def corrupt(path):
    """Flips a bit in each of several places, the middle of the file among them."""
    raw = bytearray(path.read_bytes())
    for at in {len(raw) // 2, len(raw) // 3, len(raw) // 5, 40}:
        raw[at] ^= 0x10
    path.write_bytes(raw)


def check_broken(store, tmp_path, name):
    """Starts on the broken store: wrong data is never served, and what is refused is named."""
    node = helenus.Node(tmp_path, store=store)
    node.start(wait=False)
    complaint = ""
    try:
        helenus.wait_until(lambda: not node.alive() or helenus.answers_options(node.host, node.port), 60, "start or end")
        if node.alive():
            session = node.connect()
            try:
                rows = {r.k: r.v for r in session.execute("SELECT k, v FROM c.t")}
                assert all(rows[k] == value(k) for k in rows), "corrupt data was served"
                if len(rows) == ROWS:
                    return "harmless"
            except Exception as e:
                if isinstance(e, AssertionError):
                    raise
                complaint = str(e)
    finally:
        node.close()
    words = complaint + node.log(1000)
    assert pathlib.Path(name).name in words, f"{name} is corrupt, and nothing names it:\n{words[-3000:]}"
    assert "panicked" not in words, words[-3000:]
    return "named"


@pytest.mark.timeout(600)
def test_every_data_file(store, tmp_path):
    """Each file of the store in turn is damaged."""
    outcomes = {}
    for i, name in enumerate(data_files(store)):
        if name.name.upper() == "LOCK":
            continue
        copy = tmp_path / f"copy{i}"
        shutil.copytree(store, copy)
        corrupt(copy / name)
        outcomes[str(name)] = check_broken(copy, tmp_path / f"node{i}", name)
        shutil.rmtree(copy)
    print(outcomes)
    assert "named" in outcomes.values(), "no damage was noticed at all"


@pytest.mark.timeout(300)
def test_torn_end_of_the_log_is_no_corruption(store, tmp_path):
    """Half a record at the end of the newest log file is what a crash leaves: the node starts."""
    logs = [p for p in data_files(store) if "log" in str(p).lower() or "wal" in str(p).lower()]
    assert logs, "no log files"
    copy = tmp_path / "copy"
    shutil.copytree(store, copy)
    newest = max(logs, key=lambda p: (store / p).stat().st_mtime)
    with open(copy / newest, "ab") as f:
        f.write(b"\x01\x02\x03\x04\x05")
    node = helenus.Node(tmp_path / "node", store=copy).start()
    try:
        rows = {r.k: r.v for r in node.connect().execute("SELECT k, v FROM c.t")}
        assert rows == {k: value(k) for k in range(ROWS)}
    finally:
        node.close()
