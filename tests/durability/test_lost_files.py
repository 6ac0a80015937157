"""A file in a store's folder that is cut, deleted or from an older copy is refused by name. Acknowledged rows are never lost silently."""

import os
import pathlib
import shutil
import struct
import tarfile

import pytest

import helenus

pytestmark = pytest.mark.process

ROWS = 400
ARGS = helenus.setting_args({"log_segment_bytes": "64KiB", "tablet_count": 2})


def value(k):
    return f"{k}:" + "payload " * 100


def noted_end(store):
    """Returns the newest segment that log/END records, and its recorded length."""
    raw = (store / "log" / "END").read_bytes()
    slots = [struct.unpack_from("<8sQQ", raw, at) for at in (0, 512)]
    return max(slot[1:] for slot in slots)


def segments(store):
    return sorted((store / "log").glob("*.log"))


def frames(segment):
    """Returns the offsets of a segment's frames, and the end of the last one. Frames of the file's earlier use may follow."""
    raw, at, found = segment.read_bytes(), 64, []
    while raw[at:at + 4] == b"HLRF" and struct.unpack_from("<Q", raw, at + 16)[0] == int(segment.stem, 16):
        found.append(at)
        at += 40 + struct.unpack_from("<I", raw, at + 8)[0]
    return [*found, at]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Returns a store with rows in SSTables from before a clean stop, and a log of several segments from before a kill -9."""
    node = helenus.Node(tmp_path_factory.mktemp("good"), args=ARGS).start()
    session = node.connect()
    session.execute("CREATE KEYSPACE c WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE c.t (k int PRIMARY KEY, v text)")
    insert = session.prepare("INSERT INTO c.t (k, v) VALUES (?, ?)")
    for k in range(ROWS // 2):
        session.execute(insert, (k, value(k)))
    node.close_clients()
    assert node.terminate() == 0
    node.start()
    session = node.connect()
    insert = session.prepare("INSERT INTO c.t (k, v) VALUES (?, ?)")
    for k in range(ROWS // 2, ROWS):
        session.execute(insert, (k, value(k)))
    newest = segments(node.store)[-1]
    if (node.store / "log" / "END").exists():
        helenus.wait_until(lambda: noted_end(node.store) == (int(newest.stem, 16), frames(newest)[-1]), what="the log's end is noted")
    node.close()
    assert len(segments(node.store)) > 2
    return node.store


def refusal(store, tmp_path):
    """Returns the messages of a node that does not start on this folder, or that does not serve all rows. `None` if all rows are served."""
    node = helenus.Node(tmp_path / "node", store=store, args=ARGS)
    node.start(wait=False)
    try:
        helenus.wait_until(lambda: not node.alive() or helenus.answers_options(node.host, node.port), 30, "start or end")
        if not node.alive():
            assert node.process.returncode != 0
            assert "panicked" not in node.log(1000)
            return node.log(1000)
        try:
            rows = {r.k: r.v for r in node.connect().execute("SELECT k, v FROM c.t")}
        except Exception as e:
            return f"{e}\n{node.log(1000)}"
        assert rows == {k: value(k) for k in range(ROWS)}, f"{ROWS - len(rows)} acknowledged rows are gone without a word"
        return None
    finally:
        node.close()


def cut(path, at):
    os.truncate(path, at)


def blank(path, at):
    """Replaces the bytes after an offset by zeros."""
    size = path.stat().st_size
    os.truncate(path, at)
    os.truncate(path, size)


def frame_border(path):
    """Returns the start of a frame in the middle of a segment."""
    begins = frames(path)[:-1]
    return begins[len(begins) // 2]


LOG_DAMAGES = {
    "newest cut in a frame": lambda s: (cut(s[-1], frame_border(s[-1]) + 100), s[-1]),
    "newest cut between frames": lambda s: (cut(s[-1], frame_border(s[-1])), s[-1]),
    "newest blank from between frames on": lambda s: (blank(s[-1], frame_border(s[-1])), s[-1]),
    "newest cut to nothing": lambda s: (cut(s[-1], 0), s[-1]),
    "newest deleted": lambda s: (s[-1].unlink(), s[-1]),
    "all deleted": lambda s: ([p.unlink() for p in s], s[0]),
    "one in the middle cut": lambda s: (cut(s[1], frame_border(s[1])), s[1]),
    "one in the middle deleted": lambda s: (s[1].unlink(), s[1]),
    "oldest deleted": lambda s: (s[0].unlink(), s[0]),
    "the two newest deleted": lambda s: ([p.unlink() for p in s[-2:]], s[-2]),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("damage", LOG_DAMAGES, ids=lambda name: name.replace(" ", "-"))
def test_a_log_that_is_not_whole(store, tmp_path, damage):
    copy = tmp_path / "copy"
    shutil.copytree(store, copy)
    _, named = LOG_DAMAGES[damage](segments(copy))
    words = refusal(copy, tmp_path)
    assert words and named.name in words, words


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["meta/schema", "log", "log/END", "INVENTORY", "FORMAT", "tablets/1", "tablets/1/manifest"])
def test_what_is_deleted(store, tmp_path, name):
    copy = tmp_path / "copy"
    shutil.copytree(store, copy)
    path = copy / name
    if not path.exists():
        pytest.fail(f"the store has no {name}")
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    words = refusal(copy, tmp_path)
    assert words and name in words, words


@pytest.mark.timeout(60)
def test_a_newest_manifest_that_is_deleted(store, tmp_path):
    """The one before lacks what was flushed since, and the log has it no more."""
    copy = tmp_path / "copy"
    shutil.copytree(store, copy)
    manifests = sorted((copy / "tablets/1/manifest").glob("*.manifest"))
    for manifest in manifests[2:]:
        manifest.unlink()
    words = refusal(copy, tmp_path)
    assert words and "tablets/1/manifest" in words, words


@pytest.mark.timeout(600)
def test_flipped_bits_in_small_documents(store, tmp_path):
    """No flipped bit of a document changes what a node says without a word."""
    names = ["FORMAT", "INVENTORY", "meta/schema", "log/END"]
    for kind in ["manifest", "compactions"]:
        names.append(str(max((store / "tablets/1" / kind).iterdir()).relative_to(store)))
    outcomes = {}
    for name in names:
        size = (store / name).stat().st_size
        for at in range(3, size, max(size // 6, 1)):
            copy = tmp_path / "copy"
            shutil.copytree(store, copy)
            raw = bytearray((copy / name).read_bytes())
            raw[at] ^= 1 << at % 8
            (copy / name).write_bytes(raw)
            words = refusal(copy, tmp_path)
            outcomes[name, at] = words is not None
            assert words is None or pathlib.Path(name).name in words, f"{name}, byte {at}: {words}"
            shutil.rmtree(copy)
            shutil.rmtree(tmp_path / "node")
    unnoticed = {name for name in names if not any(found for (this, _), found in outcomes.items() if this == name)}
    # The file log/END has two slots, of which one is enough.
    assert unnoticed <= {"log/END"}, outcomes


@pytest.mark.timeout(120)
def test_a_log_that_is_deleted_after_a_clean_stop_is_not_missed(tmp_path):
    """All of it is in SSTables by then, and the node has no segment left that it needs."""
    node = helenus.Node(tmp_path, args=ARGS).start()
    try:
        session = node.connect()
        session.execute("CREATE KEYSPACE c WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE c.t (k int PRIMARY KEY, v text)")
        for round in range(3):
            session.execute(f"INSERT INTO c.t (k, v) VALUES ({round}, '{value(round)}')")
            node.close_clients()
            assert node.terminate() == 0
            assert segments(node.store) == []
            node.start()
            session = node.connect()
            assert len(session.execute("SELECT k FROM c.t").all()) == round + 1
    finally:
        node.close()


@pytest.mark.timeout(120)
def test_a_store_of_format_1(tmp_path):
    """A store that an older version made, ended by kill -9: it opens, whole, and is as safe as a new one from then on."""
    with tarfile.open(pathlib.Path(__file__).with_name("store_of_format_1.tar.gz")) as tar:
        tar.extractall(tmp_path, filter="data")
    store = tmp_path / "store"
    expected = {k: f"flushed {k}" for k in range(50) if k != 7} | {k: f"in the log {k}" for k in range(50, 100)}
    node = helenus.Node(tmp_path / "node", store=store, args=ARGS)
    try:
        for _ in range(2):
            node.start()
            rows = {r.k: r.v for r in node.connect().execute("SELECT k, v FROM old.t")}
            assert rows == expected
            node.close_clients()
            node.kill()
        assert '"format": 3' in (store / "FORMAT").read_text()
        for document in (store / "tablets").rglob("*.manifest"):
            assert document.read_bytes().endswith(b"HLNSSUM1"), document
        segments(store)[-1].unlink()
        node.start(wait=False)
        assert node.process.wait(30) != 0
        assert "0000000000000002.log" in node.log()
    finally:
        node.close()
