"""Backups: what is copied, what comes back and where, what `verify` finds, what retention leaves, and kills."""

import json
import os
import re
import subprocess
import threading
import time

import pytest

import helenus
from indexed_table import KEYSPACE, counts, create
from minio import Minio
from tool import at, done, run, said, two_nodes

pytestmark = pytest.mark.process

ROWS = 2000
WHOLE = (ROWS, ROWS // 10, ROWS)


@pytest.fixture
def node(tmp_path):
    node = helenus.Node(tmp_path / "data").start()
    yield node
    node.close()


def back_up(node, to, *words):
    """Writes a backup. Returns the copied files and kibibytes, and the files that existed already."""
    report = said("backup", *at(node), "--to", to, *words)
    found = re.match(r"Backup \S+ is in \S+: (\d+) files, ([\d.]+) (bytes|KiB|MiB) copied; (\d+) files,", report)
    unit = {"bytes": 1 / 1024, "KiB": 1, "MiB": 1024}[found[3]]
    return int(found[1]), float(found[2]) * unit, int(found[4])


def names(place):
    return [document.stem for document in sorted((place / "backups").iterdir())]


def needed_by(place, *backups):
    """Returns the paths of the files of some backups."""
    documents = [json.loads((place / "backups" / f"{name}.json").read_text()) for name in backups]
    return {file["path"] for document in documents for file in document["files"]}


def fill(session, rows=range(ROWS)):
    insert = session.prepare("INSERT INTO s.t (k, i, v) VALUES (?, ?, ?)")
    helenus.execute_all(session, insert, [(k, k % 10, os.urandom(1000).hex()) for k in rows])


def begin(node):
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    create(session)
    fill(session)
    return session


def all_rows(session, tables):
    return {table: sorted(json.dumps(row[0]) for row in session.execute(f"SELECT JSON * FROM {table}")) for table in tables}


def wait_for_no_snapshots(node):
    helenus.wait_until(lambda: done(node, "listsnapshots").endswith("There are no snapshots\n"), 30, "no snapshots", 0.2)


def test_what_has_changed_is_copied_while_clients_write(node, tmp_path):
    session = begin(node)
    session.execute("CREATE TABLE s.log (k int PRIMARY KEY, n int)")
    place, ends, acknowledged = tmp_path / "backups", threading.Event(), [0]

    def write():
        while not ends.is_set():
            session.execute(f"BEGIN BATCH {''.join(f'UPDATE s.log SET n = {acknowledged[0] + 1} WHERE k = {k};' for k in range(8))} APPLY BATCH")
            acknowledged[0] += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        helenus.wait_until(lambda: acknowledged[0] > 10, what="some batches")
        least = acknowledged[0]
        files, first, reused = back_up(node, place, "--name", "first")
        most = acknowledged[0] + 1
    finally:
        ends.set()
        writer.join()
    assert files > 2 and reused == 0
    fill(session, range(ROWS // 100))
    _, changed, reused = back_up(node, place, "--name", "second")
    assert changed < first / 10, "one hundredth has changed"
    assert reused >= 1
    files, none, _ = back_up(node, place, "--name", "third")
    assert none < first / 100, "only manifests are new"
    assert names(place) == ["first", "second", "third"]
    wait_for_no_snapshots(node)
    assert re.search(r"Can be restored: first, second, third\n", said("backup", "verify", "--from", place))
    listed = said("backup", "list", "--from", place)
    assert [line.split()[0] for line in listed.splitlines()] == ["Name", "first", "second", "third"]
    assert "Keyspace  s: log t\n" in said("backup", "list", "--from", place, "--name", "first")
    assert "there is a backup first" in run("backup", *at(node), "--to", place, "--name", "first").stderr

    said("restore", *at(node), "--from", place, "--name", "first", "--keyspace", "s", "--table", "log")
    found = {row.n for row in session.execute("SELECT n FROM s.log")}
    assert len(found) == 1, "a batch is there in part"
    assert least <= found.pop() <= most


TABLES = ["s.t", "s.t_view", "s.p", "s.counts", "s.vectors", "other.u"]


def fill_all_kinds(session):
    """Writes deletions of all kinds, collections, counters, types, static columns, indexes and views."""
    session.execute(KEYSPACE.format("s"))
    session.execute(KEYSPACE.format("other"))
    session.execute(KEYSPACE.format("empty"))
    session.execute("CREATE TYPE empty.point (x int)")
    create(session)
    fill(session)
    for k in range(0, ROWS, 7):
        session.execute("DELETE FROM s.t WHERE k = %s", (k,))
    session.execute("CREATE TABLE s.counts (k int PRIMARY KEY, n counter)")
    for k in range(10):
        session.execute("UPDATE s.counts SET n = n + %s WHERE k = %s", (k, k))
        session.execute("UPDATE s.counts SET n = n + 1 WHERE k = %s", (k,))
    session.execute("CREATE TYPE s.point (x int, y frozen<list<int>>)")
    session.execute("CREATE TABLE s.p (p int, c int, st text static, l list<int>, m map<text, int>, u point, PRIMARY KEY (p, c))"
                    " WITH CLUSTERING ORDER BY (c DESC)")
    for p in range(20):
        session.execute("INSERT INTO s.p (p, st) VALUES (%s, 'static')", (p,))
        for c in range(10):
            session.execute("INSERT INTO s.p (p, c, l, m, u) VALUES (%s, %s, [1, 2, 3], {'a': 1, 'b': 2}, {x: 1, y: [2]})", (p, c))
    session.execute("DELETE FROM s.p WHERE p = 1")
    session.execute("DELETE FROM s.p WHERE p = 2 AND c > 3 AND c < 8")
    session.execute("DELETE l[1], m['a'] FROM s.p WHERE p = 3 AND c = 3")
    session.execute("UPDATE s.p SET l = l + [4], u.x = null WHERE p = 4 AND c = 4")
    session.execute("INSERT INTO s.p (p, c) VALUES (1, 5)")
    session.execute("CREATE TABLE s.vectors (k int PRIMARY KEY, v vector<float, 2>)")
    session.execute("CREATE INDEX vectors_v ON s.vectors (v) USING 'sai'")
    for k in range(50):
        session.execute(f"INSERT INTO s.vectors (k, v) VALUES ({k}, [{k}.5, 1.0])")
    session.execute("CREATE TABLE other.u (k uuid PRIMARY KEY, n int)")
    session.execute("CREATE INDEX u_n ON other.u (n) USING 'sai'")
    session.execute("INSERT INTO other.u (k, n) VALUES (uuid(), 5)")
    session.execute("CREATE FUNCTION other.twice (n int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return 2 * n;'")


NEAREST = "SELECT k FROM s.vectors ORDER BY v ANN OF [20.4, 1.0] LIMIT 3"


def test_an_empty_store_is_made_of_a_backup(tmp_path):
    secured = [*helenus.SECURED, "--set", "superuser_password=secret"]
    node = helenus.Node(tmp_path / "data", args=secured).start()
    place, new = tmp_path / "backups", tmp_path / "new" / "store"
    made = None
    try:
        session = helenus.log_in(node, "cassandra", "secret")
        fill_all_kinds(session)
        session.execute("CREATE ROLE ann WITH PASSWORD = 'hers' AND LOGIN = true")
        session.execute("GRANT SELECT ON s.t TO ann")
        expected, nearest = all_rows(session, TABLES), session.execute(NEAREST).all()
        back_up(node, place, "--name", "all")
        # The backup needs neither the store nor its node.
        session.execute("DROP KEYSPACE other")
        node.close()
        report = said("restore", "--from", place, "--to", new)
        assert "Restored other.u from backup all\n" in report and "Restored roles ann, cassandra\n" in report
        assert "is not empty" in run("restore", "--from", place, "--to", new).stderr
        made = helenus.Node(tmp_path / "new", store=new, args=helenus.SECURED).start()
        session = helenus.log_in(made, "cassandra", "secret")
        assert all_rows(session, TABLES) == expected
        assert session.execute(NEAREST).all() == nearest
        by_index = session.execute("SELECT count(*) FROM s.t WHERE i = 3").one()[0]
        assert by_index == sum(1 for row in expected["s.t"] if '\\"i\\": 3,' in row)
        assert session.execute("SELECT other.twice(n) AS n FROM other.u WHERE n = 5").one().n == 10
        assert session.execute("SELECT type_name FROM system_schema.types WHERE keyspace_name = 'empty'").one().type_name == "point"
        # Later writes win, also over timestamps of the other store.
        session.execute("UPDATE s.p SET m = {'z': 26} WHERE p = 3 AND c = 3")
        session.execute("UPDATE s.counts SET n = n + 1 WHERE k = 9")
        made.kill()
        made.start()
        session = helenus.log_in(made, "ann", "hers")
        assert session.execute("SELECT count(*) FROM s.t").one()[0] == len(expected["s.t"])
        session = helenus.log_in(made, "cassandra", "secret")
        assert session.execute("SELECT m FROM s.p WHERE p = 3 AND c = 3").one().m == {"z": 26}
        assert session.execute("SELECT n FROM s.counts WHERE k = 9").one().n == 11
    finally:
        node.close()
        if made:
            made.close()


def test_one_keyspace_comes_back_into_a_running_node(node, tmp_path):
    session = begin(node)
    session.execute(KEYSPACE.format("other"))
    session.execute("CREATE TABLE other.u (k int PRIMARY KEY)")
    session.execute("INSERT INTO other.u (k) VALUES (1)")
    place = tmp_path / "backups"
    back_up(node, place)
    session.execute("TRUNCATE s.t")
    session.execute("INSERT INTO s.t (k, i, v) VALUES (-1, 3, 'later')")
    session.execute("INSERT INTO other.u (k) VALUES (2)")
    report = said("restore", *at(node), "--from", place, "--keyspace", "s")
    replaced = re.fullmatch(r"Restored s\.t from backup \S+\nThe replaced rows are in snapshot (replaced-\d+-t)\n", report)[1]
    assert counts(session) == WHOLE
    assert session.execute("SELECT count(*) FROM other.u").one()[0] == 2
    done(node, "compact")
    node.kill()
    node.start()
    session = node.connect()
    assert counts(session) == WHOLE
    done(node, "restore", "-t", replaced)
    assert counts(session) == (1, 1, 1)
    session.execute("DROP KEYSPACE s")
    said("restore", *at(node), "--from", place, "--keyspace", "s")
    assert counts(session) == WHOLE
    assert "has no table none" in run("restore", *at(node), "--from", place, "--keyspace", "s", "--table", "none").stderr
    assert "there is no folder" in run("restore", *at(node), "--from", tmp_path / "none").stderr


def tables(place):
    """Returns the SSTables of a place, from old to new."""
    return sorted(place.glob("tablets/*/compacted/*.sst"), key=lambda path: path.name)


def test_verify_names_what_is_damaged_and_what_is_missing(node, tmp_path):
    session = begin(node)
    place = tmp_path / "backups"
    back_up(node, place, "--name", "first")
    of_first = set(tables(place))
    fill(session, range(10))
    back_up(node, place, "--name", "second")
    damaged = min(of_first, key=lambda path: path.name)
    lost = next(path for path in tables(place) if path not in of_first)
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    moved = lost.rename(tmp_path / "moved")
    ended = run("backup", "verify", "--from", place)
    assert ended.returncode == 1
    assert f"{damaged.relative_to(place)}: it is damaged: it does not match its checksum (backups: first, second)\n" in ended.stdout
    assert f"{lost.relative_to(place)}: it is missing (backups: second)\n" in ended.stdout
    assert ended.stdout.endswith("Can't be restored whole: first, second\n")
    ended = run("backup", "verify", "--from", place, "--name", "first")
    assert ended.returncode == 1 and "missing" not in ended.stdout
    assert "it is damaged" in ended.stdout

    moved.rename(lost)
    damaged.write_bytes(content[:-1])
    ended = run("backup", "verify", "--from", place)
    assert f"it has {len(content) - 1} bytes instead of {len(content)}" in ended.stdout
    # The store still has it: a backup puts it in its place again.
    back_up(node, place, "--name", "third")
    assert said("backup", "verify", "--from", place).endswith("Can be restored: first, second, third\n")

    manifest = next(place / path for path in needed_by(place, "third") if path.endswith(".manifest"))
    manifest.write_bytes(manifest.read_bytes()[:-1])
    document = place / "backups" / "second.json"
    document.write_bytes(document.read_bytes().replace(b'"name": "second"', b'"name": "sec0nd"'))
    ended = run("backup", "verify", "--from", place)
    assert ended.returncode == 1
    assert f"{manifest.relative_to(place)}: it is damaged" in ended.stdout
    assert "backups/second.json: it can't be read: the document does not match its checksum (backups: second)" in ended.stdout
    # A document that can't be read may need anything.
    ended = run("backup", *at(node), "--to", place, "--name", "fourth", "--keep", "1")
    assert ended.returncode == 0 and "older backups could not be removed" in ended.stderr
    assert len(names(place)) == 4


def test_retention_leaves_what_backups_need(node, tmp_path):
    session = begin(node)
    place = tmp_path / "backups"
    for name in ("first", "second", "third"):
        back_up(node, place, "--name", name)
        fill(session, range(ROWS // 20))
        # SSTables of the backup before go from the store.
        done(node, "flush")
        done(node, "compact")
    before = set(tables(place))
    report = said("backup", *at(node), "--to", place, "--name", "fourth", "--keep", "2")
    assert re.search(r"Removed first, second: \d+ files, .* that no other backup needs\n", report)
    assert names(place) == ["fourth", "third"]
    assert before - set(tables(place)), "nothing was removed"
    assert said("backup", "verify", "--from", place).endswith("Can be restored: third, fourth\n")
    there = {str(path.relative_to(place)) for path in (place / "tablets").rglob("*") if path.is_file()}
    assert there == needed_by(place, *names(place))
    said("restore", *at(node), "--from", place, "--name", "third")
    assert counts(session) == WHOLE
    back_up(node, place, "--name", "fifth", "--keep-for", "30d")
    assert names(place) == ["fifth", "fourth", "third"]


def test_an_encrypted_backup_is_read_with_its_key_alone(node, tmp_path):
    session = begin(node)
    session.execute("INSERT INTO s.t (k, i, v) VALUES (-1, 3, 'nobody reads this')")
    place, new, key, other = (tmp_path / name for name in ("backups", "new", "key", "other"))
    key.write_text(os.urandom(32).hex() + "\n")
    other.write_text(os.urandom(32).hex())
    with_key = "--key-file", key
    back_up(node, place, "--name", "first", *with_key)
    fill(session, range(10))
    _, changed, reused = back_up(node, place, "--name", "second", *with_key)
    assert changed < 500 and reused > 0
    files = [path for path in place.rglob("*") if path.is_file() and not path.name.startswith("helenus-backup")]
    assert len(files) > 4 and all(path.read_bytes().endswith(b"HLNSENC1") for path in files)
    assert not any(b"nobody reads" in path.read_bytes() for path in files)
    assert said("backup", "verify", "--from", place, *with_key).endswith("Can be restored: first, second\n")
    for command in (("backup", "list"), ("backup", "verify"), ("restore", *at(node))):
        assert "are encrypted: name the file with their key" in run(*command, "--from", place).stderr
        assert "are encrypted with another key" in run(*command, "--from", place, "--key-file", other).stderr
    assert "are encrypted" in run("backup", *at(node), "--to", place).stderr
    assert "is no key" in run("backup", "list", "--from", place, "--key-file", node.log_path).stderr
    session.execute("DROP KEYSPACE s")
    said("restore", *at(node), "--from", place, *with_key)
    assert counts(session) == (ROWS + 1, ROWS // 10 + 1, ROWS + 1)
    said("restore", "--from", place, "--name", "first", "--to", new, *with_key)
    made = helenus.Node(tmp_path / "made", store=new).start()
    try:
        assert counts(made.connect()) == (ROWS + 1, ROWS // 10 + 1, ROWS + 1)
    finally:
        made.close()
    damaged = tables(place)[0]
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    ended = run("backup", "verify", "--from", place, *with_key)
    assert ended.returncode == 1 and f"{damaged.relative_to(place)}: it can't be read" in ended.stdout


def test_backups_are_written_on_schedule(tmp_path):
    place = tmp_path / "backups"
    settings = helenus.setting_args({"backup_to": place, "backup_interval": "1s", "backup_keep": 2})
    node = helenus.Node(tmp_path / "data", args=settings).start()
    try:
        begin(node)
        helenus.wait_until(lambda: node.log().count("a backup was written") >= 3, 60, "backups", 0.2)
        node.close()
        assert len(names(place)) == 2
        assert "Can be restored: " in said("backup", "verify", "--from", place)
        assert "Setting   backup_keep = 2\n" in said("backup", "list", "--from", place, "--name", names(place)[1])
    finally:
        node.close()


def test_a_place_has_the_backups_of_one_store(node, tmp_path):
    begin(node)
    place = tmp_path / "backups"
    back_up(node, place)
    other = helenus.Node(tmp_path / "other").start()
    try:
        assert "use another place" in run("backup", *at(other), "--to", place).stderr
        assert "backups go to a place of their own" in run("backup", *at(other), "--to", node.store).stderr
        assert "no name of a backup" in run("backup", *at(other), "--to", tmp_path / "x", "--name", "a/b").stderr
        wait_for_no_snapshots(other)
    finally:
        other.close()


def test_a_backup_in_a_bucket_that_was_cut_off_by_a_kill(tmp_path):
    minio = Minio(tmp_path / "minio").start()
    bucket = minio.bucket("backups")
    place, env = f"s3://{bucket}/of/node", minio.environment()
    node = helenus.Node(tmp_path / "data", env=env).start()
    made = None
    try:
        session = begin(node)
        back_up(node, place, "--name", "first")
        fill(session, range(100))
        minio.pause()
        command = [str(helenus.binary()), "backup", *map(str, at(node)), "--to", place, "--name", "second"]
        cut_off = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=helenus.clean_environment())
        helenus.wait_until(lambda: "backup-" in done(node, "listsnapshots"), what="a snapshot that holds the files")
        assert "backing up already" in run("backup", *at(node), "--to", place).stderr
        node.kill()
        minio.resume()
        cut_off.wait(30)
        node.start()
        session = node.connect()
        wait_for_no_snapshots(node)
        helenus.wait_until(lambda: "tablets of former snapshots were unpinned" in node.log(), 30, "checkpoints let go")
        verify = lambda: said("backup", "verify", "--from", place, env=env)
        assert verify().endswith("Can be restored: first\n")
        _, _, reused = back_up(node, place, "--name", "second")
        assert reused > 0
        assert verify().endswith("Can be restored: first, second\n")
        store = f"s3://{minio.bucket('restored')}/store"
        said("restore", "--from", place, "--to", store, "--set", "tablet_count=2", env=env)
        expected = all_rows(session, ["s.t", "s.t_view"])
        made = helenus.Node(tmp_path / "made", store=store, env=env).start()
        assert all_rows(made.connect(), ["s.t", "s.t_view"]) == expected
    finally:
        node.close()
        if made:
            made.close()
        minio.close()


def test_a_backup_comes_back_into_a_cluster(node, tmp_path):
    session = begin(node)
    session.execute("DELETE FROM s.t WHERE k IN (1, 2, 3)")
    place = tmp_path / "backups"
    back_up(node, place)
    expected = all_rows(session, ["s.t", "s.t_view"])
    with two_nodes(tmp_path / "cluster", tablets=4) as (first, second):
        said("restore", *at(first), "--from", place)
        for one in (first, second):
            assert all_rows(one.connect(), ["s.t", "s.t_view"]) == expected


def test_any_time_between_two_backups_is_restored(tmp_path):
    """The schema, rows and indexes as of that time are restored from the logs in backups: truncated ones, and the newest."""
    node = helenus.Node(tmp_path / "data", args=["--set", "point_in_time_window=1h"]).start()
    place, times = tmp_path / "backups", []
    note = lambda *what: (time.sleep(0.005), times.append((int(time.time() * 1000), what)), time.sleep(0.005))
    try:
        session = begin(node)
        note(WHOLE)
        back_up(node, place, "--name", "first")
        session.execute("DELETE FROM s.t WHERE k IN (3, 13)")
        note((ROWS - 2, ROWS // 10 - 2, ROWS - 2))
        session = restarted(node)
        # The log of before the restart is cut off.
        done(node, "flush")
        helenus.wait_until(lambda: list(node.store.glob("history/log/*/*")), 20, "the log is cut", 0.2)
        session.execute("CREATE TABLE s.later (k int PRIMARY KEY, v int)")
        session.execute("INSERT INTO s.later (k, v) VALUES (1, 1)")
        note((ROWS - 2, ROWS // 10 - 2, ROWS - 2), 1)
        session.execute("TRUNCATE s.t")
        session.execute("DROP TABLE s.later")
        note((0, 0, 0))
        back_up(node, place, "--name", "second")
        session.execute("INSERT INTO s.t (k, i, v) VALUES (1, 3, 'later')")
        note((1, 1, 1))
        back_up(node, place, "--name", "third")
        assert "Can be restored: first, second, third\n" in said("backup", "verify", "--from", place)
        for at_ms, (expected, *later) in times[1:]:
            said("restore", *at(node), "--from", place, "--as-of", at_ms, "--keyspace", "s")
            assert counts(session) == expected, at_ms
            if later:
                assert session.execute("SELECT v FROM s.later").all() == [(1,)]
                session.execute("DROP TABLE s.later")
        assert "no backup from before" in run("restore", *at(node), "--from", place, "--as-of", times[0][0]).stderr
        assert "no backup from after" in run("restore", *at(node), "--from", place, "--as-of", int(time.time() * 1000)).stderr
        at_ms, (expected, _) = times[2]
        said("restore", "--from", place, "--as-of", at_ms, "--to", tmp_path / "new", "--set", "tablet_count=5")
    finally:
        node.close()
    with_new = helenus.Node(tmp_path / "other", store=tmp_path / "new").start()
    try:
        assert counts(with_new.connect()) == expected
    finally:
        with_new.close()


def restarted(node):
    node.kill()
    node.start()
    return node.connect()
