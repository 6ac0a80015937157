"""The report's user table: 27 columns, six indexes, 100,000 rows at QUORUM, read before and after a kill -9 under load."""

import random
import threading

import pytest
from cassandra import ConsistencyLevel
from cassandra.concurrent import execute_concurrent_with_args

import helenus

pytestmark = pytest.mark.process

ROWS = 100_000
SAMPLE = 2_000
TEXTS = """channel countrycode createdby createddate currentlogintime dob email firstname gender lastname loginid
    password phone updatedby updateddate userid username usertype""".split()
INDEXED = ["userid", "loginid", "email", "status", "phone", "username"]
STATUSES = 500

TABLE = """CREATE TABLE users.users (
    id text PRIMARY KEY, channel text, countrycode text, createdby text, createddate text, currentlogintime text,
    dob text, email text, emailverified boolean, firstname text, flagsvalue int,
    framework map<text, frozen<list<text>>>, gender text, grade list<text>, language list<text>, lastname text,
    loginid text, password text, phone text, phoneverified boolean, profilevisibility map<text, text>, status int,
    updatedby text, updateddate text, userid text, username text, usertype text)"""


def user(n, version=0):
    row = {c: f"{c} {n}" for c in TEXTS}
    row.update(
        id=f"id-{n}", emailverified=n % 2 == 0, flagsvalue=n % 7, framework={"board": [f"b{n % 5}", "x"], "grade": []},
        grade=[f"g{n % 12}"], language=["en", f"l{n % 9}"], phoneverified=n % 3 == 0,
        profilevisibility={"email": "private", "phone": str(n % 4)}, status=n % STATUSES,
        email=f"user{n}.{version}@example.org", phone=f"+49{n:09d}", channel=f"channel {n % 10}")
    return row


COLUMNS = sorted(user(0))


def matches(row, n, versions=(0,)):
    return any(all(getattr(row, c) == want for c, want in user(n, v).items()) for v in versions)


def load(session):
    insert = session.prepare(f"INSERT INTO users.users ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})")
    insert.consistency_level = ConsistencyLevel.QUORUM
    rows = ([user(n)[c] for c in COLUMNS] for n in range(ROWS))
    results = execute_concurrent_with_args(session, insert, rows, concurrency=256, results_generator=True)
    assert all(ok for ok, _ in results)


def prepared_reads(session):
    reads = {"id": session.prepare("SELECT * FROM users.users WHERE id = ?")}
    for column in INDEXED:
        reads[column] = session.prepare(f"SELECT * FROM users.users WHERE {column} = ?")
    for statement in reads.values():
        statement.consistency_level = ConsistencyLevel.QUORUM
    return reads


def check_reads(session, changed, also=()):
    """Makes all reads of the report, by id and by each index, for a sample of rows and the rows `also`. `changed` has the allowed versions of
    a row.
    """
    reads = prepared_reads(session)
    dice = random.Random(4)
    sample = sorted({*dice.sample(range(ROWS), SAMPLE), *also})
    for column in ["id", *INDEXED]:
        if column == "status":
            continue
        asked = []
        for n in sample:
            versions = changed.get(n, (0,))
            asked += [(n, user(n, v)[column], versions) for v in (versions if column == "email" else versions[:1])]
        results = execute_concurrent_with_args(session, reads[column], [(a[1],) for a in asked], concurrency=64)
        found = {}
        for (n, value, versions), (ok, rows) in zip(asked, results):
            assert ok, rows
            for row in rows:
                assert matches(row, n, versions), (column, value, row)
                assert getattr(row, column) == value
                found[n] = found.get(n, 0) + 1
        # exactly one of a row's possible addresses is its own
        assert found == {n: 1 for n in {a[0] for a in asked}}, column
    for status in (0, 17, STATUSES - 1):
        rows = session.execute(reads["status"], (status,)).all()
        assert {r.id for r in rows} == {f"id-{n}" for n in range(status, ROWS, STATUSES)}
        for row in rows:
            n = int(row.id[3:])
            assert matches(row, n, changed.get(n, (0,)))
    for column in INDEXED:
        assert session.execute(reads[column], (-1 if column == "status" else "nobody",)).all() == []


@pytest.mark.timeout(1500)
def test_users_by_id_and_by_every_index(node):
    session = node.connect()
    session.execute("CREATE KEYSPACE users WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute(TABLE)
    for column in INDEXED:
        session.execute(f"CREATE INDEX users_{column} ON users.users ({column})")
    load(session)
    assert sum(1 for _ in session.execute("SELECT id FROM users.users")) == ROWS
    check_reads(session, {})

    # change email addresses at full speed from one side to the other, and kill the node amid it
    update = session.prepare("UPDATE users.users SET email = ? WHERE id = ?")
    update.consistency_level = ConsistencyLevel.QUORUM
    sent, acked, dead = {}, {}, threading.Event()
    window = threading.Semaphore(64)

    def change():
        for n in range(0, ROWS, 3):
            if dead.is_set():
                return
            window.acquire()
            sent[n] = 1

            def done(_, n=n):
                acked[n] = 1
                window.release()

            def failed(_):
                dead.set()
                window.release()

            session.execute_async(update, (user(n, 1)["email"], f"id-{n}")).add_callbacks(done, failed)

    writer = threading.Thread(target=change, daemon=True)
    writer.start()
    helenus.wait_until(lambda: len(acked) > 5000, 60, "5,000 changes", 0.001)
    node.kill()
    dead.set()
    writer.join(30)
    node.close_clients()
    node.start()
    session = node.connect()
    changed = {n: (1,) if n in acked else (0, 1) for n in sent}
    assert sum(1 for _ in session.execute("SELECT id FROM users.users")) == ROWS
    in_doubt = [n for n in sent if n not in acked]
    check_reads(session, changed, in_doubt + random.Random(1).sample(sorted(acked), 400))

    # an index made on the loaded table is built in the background and then answers
    session.execute("CREATE INDEX users_channel ON users.users (channel)")

    def built():
        try:
            return sum(1 for _ in session.execute("SELECT id FROM users.users WHERE channel = 'channel 3'"))
        except Exception:
            return None

    assert helenus.wait_until(built, 120, "the index on channel", 0.2) == ROWS // 10
