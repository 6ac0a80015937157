"""Full query logs: traffic of a driver is logged, survives kill -9, is shown, and makes the same tables elsewhere when it is replayed."""

import subprocess
import time

import pytest
from cassandra import ConsistencyLevel, InvalidRequest
from cassandra.query import BatchStatement, BatchType, SimpleStatement, UNSET_VALUE

import helenus
import loader
from tool import nodetool

pytestmark = pytest.mark.process

TABLES = ["things", "counts"]


@pytest.fixture
def nodes(tmp_path):
    """Starts nodes."""
    started = []

    def start(**settings):
        folder = tmp_path / f"node{len(started)}"
        started.append(helenus.Node(folder, args=helenus.setting_args(settings)).start())
        return started[-1]

    yield start
    for node in started:
        node.close()


def fql(*words, status=loader.WELL):
    done = subprocess.run([loader.binary(), "fql", *map(str, words)], text=True, capture_output=True, timeout=120,
                          env=helenus.clean_environment())
    assert done.returncode == status, done
    return done


def enable(node, folder, *words):
    ended = nodetool(node, "enablefullquerylog", "--path", str(folder), *words)
    assert ended.returncode == 0, ended.stderr


def address(node):
    return f"{node.host}:{node.port}"


def make_tables(session):
    session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE shop.things (p int, c text, v text, tags set<text>, b blob, PRIMARY KEY (p, c))")
    session.execute("CREATE TABLE shop.counts (p int PRIMARY KEY, n counter)")


def traffic(session):
    """Runs statements of every kind. The driver sets their timestamps."""
    session.execute("USE shop")
    insert = session.prepare("INSERT INTO things (p, c, v, tags) VALUES (?, ?, ?, ?)")
    count = session.prepare("UPDATE counts SET n = n + ? WHERE p = ?")
    for p in range(20):
        session.execute(insert, [p, f"c{p}", f"v{p}", {"a", f"t{p}"}])
        session.execute(count, [p + 1, p % 3])
    session.execute(insert, [100, "unset", UNSET_VALUE, None])
    session.execute("INSERT INTO shop.things (p, c, b) VALUES (%s, %s, %s)", [101, "it's ü", b"\x00\xff" * 600])
    batch = BatchStatement(BatchType.UNLOGGED, consistency_level=ConsistencyLevel.QUORUM)
    for p in range(200, 230):
        batch.add(insert, [p, "batch", f"v{p}", None])
    batch.add("UPDATE things SET v = 'text of a batch' WHERE p = 1 AND c = 'c1'")
    session.execute(batch)
    counters = BatchStatement(BatchType.COUNTER)
    counters.add(count, [1000, 1])
    session.execute(counters)
    session.execute("DELETE FROM things WHERE p = 3")
    session.execute("UPDATE things SET tags = tags - {'a'} WHERE p = 4 AND c = 'c4'")
    session.execute(SimpleStatement("INSERT INTO things (p, c, v) VALUES (5, 'lwt', 'x') IF NOT EXISTS",
                                    serial_consistency_level=ConsistencyLevel.LOCAL_SERIAL))
    session.execute("UPDATE things SET v = 'older' WHERE p = 6 AND c = 'c6' IF v = 'something else'")
    assert len(session.execute("SELECT * FROM things WHERE p = 7").all()) == 1
    for wrong in ("INSERT INTO things (p) VALUES (900)", "SELECT missing FROM things"):
        with pytest.raises(InvalidRequest):
            session.execute(wrong)


def contents(session):
    """Returns the rows of the tables, with their write times."""
    found = {table: [tuple(row) for row in session.execute(f"SELECT * FROM shop.{table}")] for table in TABLES}
    found["writetimes"] = [tuple(row) for row in session.execute("SELECT p, c, WRITETIME(v) FROM shop.things") if row.c != "lwt"]
    return found


def entries(dumped):
    """Returns the entries of a dump, each as its lines."""
    return [entry.splitlines() for entry in dumped.split("\n\n") if entry.strip()]


def test_a_replay_makes_the_same_tables(nodes, tmp_path):
    first, second, third = nodes(), nodes(), nodes()
    schema, log = tmp_path / "schema", tmp_path / "log"
    # The driver must not query tables that differ between nodes.
    windows = dict.fromkeys(("schema_event_refresh_window", "topology_event_refresh_window", "status_event_refresh_window"), -1)
    session = first.connect(schema_metadata_enabled=False, token_metadata_enabled=False, **windows)
    enable(first, schema)
    make_tables(session)
    assert nodetool(first, "disablefullquerylog").returncode == 0
    enable(first, log)
    traffic(session)
    assert nodetool(first, "disablefullquerylog").returncode == 0
    expected = contents(session)

    # Without the changes of the schema there is nothing to write to.
    replayed = fql("replay", "--target", address(second), log, schema, status=loader.ERRORS)
    assert "does not exist" in replayed.stderr and "3 left out" in replayed.stdout, replayed
    targets = ["--target", address(second), "--target", address(third)]
    results, queries = tmp_path / "results", tmp_path / "queries"
    fql("replay", *targets, "--replay-ddl-statements", schema)
    replayed = fql("replay", *targets, "--results", results, "--store-queries", queries, log)
    assert replayed.stdout.endswith(" 0 left out, 0 failed\n") and replayed.stderr == "", replayed
    for node in (second, third):
        assert contents(node.connect()) == expected
    folders = [results / address(node) for node in (second, third)]
    compared = fql("compare", "--queries", queries, *folders)
    assert compared.stdout.endswith(" queries, 0 with different results\n"), compared

    # A second replay meets rows that were not there, and counters count twice.
    again = tmp_path / "again"
    fql("replay", "--target", address(third), "--keyspace", "shop", "--results", again, "--store-queries", tmp_path / "q", log)
    fql("replay", "--target", address(second), "--keyspace", "shop", "--results", again, log)
    fql("compare", "--queries", tmp_path / "q", *[again / address(node) for node in (second, third)])
    session = third.connect()
    assert [row.n for row in session.execute("SELECT n FROM shop.counts WHERE p = 1")] == [2 * (2 + 5 + 8 + 11 + 14 + 17 + 20 + 1000)]
    session.execute("UPDATE shop.things SET v = 'changed' WHERE p = 7 AND c = 'c7'")
    fql("replay", "--target", address(third), "--keyspace", "shop", "--results", tmp_path / "later", log)
    differing = fql("compare", "--queries", tmp_path / "q", again / address(second), tmp_path / "later" / address(third),
                    status=loader.UNVERIFIED)
    assert "Query = SELECT * FROM things WHERE p = 7" in differing.stdout, differing


def test_a_dump_shows_statements_values_and_options(nodes, tmp_path):
    node = nodes(authenticator="PasswordAuthenticator", authorizer="CassandraAuthorizer")
    session = helenus.log_in(node, "cassandra", "cassandra", protocol_version=5)
    make_tables(session)
    enable(node, tmp_path / "log")
    traffic(session)
    session.execute("CREATE ROLE ann WITH PASSWORD = 'secret' AND LOGIN = true")
    session.cluster.shutdown()
    assert nodetool(node, "disablefullquerylog").returncode == 0
    dumped = fql("dump", tmp_path / "log")
    assert dumped.stderr == "" and "secret" not in dumped.stdout and "WITH PASSWORD *******" in dumped.stdout
    found = entries(dumped.stdout)
    inserts = [entry for entry in found if "Query: INSERT INTO things (p, c, v, tags) VALUES (?, ?, ?, ?)" in entry and "Type: single-query" in entry]
    assert len(inserts) == 21
    first = inserts[0]
    assert [line.partition(":")[0] for line in first[:9]] == [
        "Type", "Query start time", "Protocol version", "Generated timestamp", "Generated nowInSeconds", "Keyspace", "Consistency", "Query", "Values"]
    assert first[2] == "Protocol version: 5" and first[3] == "Generated timestamp:-9223372036854775808"
    assert first[5:7] == ["Keyspace: shop", "Consistency: LOCAL_ONE"]
    assert first[9] == "00000000" + 4 * " 00" + 38 * " " + "····" + 13 * " "
    assert [line for line in first[9:] if line == "-----"] == ["-----"] * 3
    assert inserts[-1][-4:-1] == ["unset", "-----", "null"] and inserts[-1][-1] == "-----"
    batches = [entry for entry in found if entry[0] == "Type: batch"]
    assert [entry[7] for entry in batches] == ["Batch type: UNLOGGED", "Batch type: COUNTER"]
    assert batches[0][6] == "Consistency: QUORUM"
    assert sum(line.startswith("Query: ") for line in batches[0]) == 31
    # Requests that have failed are not logged, and those to prepare statements neither.
    texts = [line for entry in found for line in entry if line.startswith("Query: ")]
    assert not any("900" in text or "missing" in text for text in texts)
    assert "Query: SELECT * FROM things WHERE p = 7" in texts


def test_a_killed_node_leaves_a_log_that_lacks_the_end_at_most(nodes, tmp_path):
    node, other = nodes(), nodes()
    session = node.connect()
    make_tables(session)
    make_tables(other.connect())
    log = tmp_path / "log"
    enable(node, log)
    # The node dates what is written.
    session.use_client_timestamp = False
    insert = session.prepare("INSERT INTO shop.things (p, c, v) VALUES (?, 'k', ?)")
    written = []
    for p in range(250):
        for value in ("before", "v" * p):
            session.execute(insert, [p, value])
            written.append(p)
    # The thread hands on what waits as soon as nothing more does.
    def logged():
        return fql("dump", log).stdout.count("Query: INSERT INTO shop.things")
    helenus.wait_until(lambda: logged() == len(written), what="all entries")
    futures = [session.execute_async(insert, [p, "w"]) for p in range(500, 700)]
    node.kill()
    node.close_clients()
    before = logged()
    assert len(written) <= before <= len(written) + len(futures)
    # A tail that is torn takes nothing else along.
    last = sorted(log.glob("*.fql"))[-1]
    last.write_bytes(last.read_bytes() + b"\x00\x00\x00\x80torn")
    torn = fql("dump", log)
    assert "ends within an entry" in torn.stderr and torn.stdout.count("Query: INSERT") == before
    replayed = fql("replay", "--target", address(other), log)
    assert "ends within an entry" in replayed.stderr and " 0 failed" in replayed.stdout
    rows = {row.p: row.v for row in other.connect().execute("SELECT p, v FROM shop.things")}
    assert all(rows[p] == "v" * p for p in written)
    generated = [int(entry[3].partition(":")[2]) for entry in entries(torn.stdout) if "Query: INSERT INTO shop.things" in entry[7]]
    assert len(set(generated)) == before and min(generated) > 0
    # A node that starts again writes on beside it.
    node.start()
    enable(node, log)
    node.connect().execute("SELECT * FROM shop.things WHERE p = 1")
    assert nodetool(node, "disablefullquerylog").returncode == 0
    assert "Query: SELECT * FROM shop.things WHERE p = 1" in fql("dump", log).stdout


def test_a_replay_keeps_to_the_pace_of_the_log_and_logs_in(nodes, tmp_path):
    node = nodes()
    secured = nodes(authenticator="PasswordAuthenticator", authorizer="CassandraAuthorizer")
    log = tmp_path / "log"
    session = node.connect()
    enable(node, log)
    make_tables(session)
    assert nodetool(node, "disablefullquerylog").returncode == 0
    starts = [int(line.split()[-1]) for line in fql("dump", log).stdout.splitlines() if line.startswith("Query start time")]
    refused = fql("replay", "--target", address(secured), "-P", "wrong", log, status=1)
    assert "incorrect" in refused.stderr
    began = time.monotonic()
    fql("replay", "--target", address(secured), "--speed", "0.5", "--replay-ddl-statements", log)
    assert time.monotonic() - began >= 2 * (max(starts) - min(starts)) / 1000
    session = helenus.log_in(secured, "cassandra", "cassandra")
    assert {row.table_name for row in session.execute("SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'shop'")} == set(TABLES)
    session.cluster.shutdown()
