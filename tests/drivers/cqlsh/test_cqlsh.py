"""cqlsh as people use it: DESCRIBE, COPY, SOURCE, result tables, exit codes."""

import csv
import os
import shutil
import subprocess
import sys

import pytest

import helenus

COPY_ROWS = 100_000


@pytest.fixture(scope="module")
def cqlsh(target):
    """Runs cqlsh with the given statements; returns (exit code, stdout, stderr)."""
    program = shutil.which("cqlsh") or os.path.join(os.path.dirname(sys.executable), "cqlsh")
    if not os.path.exists(program):
        words = "cqlsh: skipped, it needs Python 3.11 or older"
        pytest.fail(words) if os.environ.get("CI") == "true" else pytest.skip(words)

    def run(statements, *options, timeout_s=240, cwd=None):
        source = ["-e", statements.strip().rstrip(";")] if statements is not None else []
        done = subprocess.run(
            [sys.executable, program, target.host, str(target.port), "--request-timeout=60", "--connect-timeout=30",
             "--no-color", *options, *source],
            text=True, capture_output=True, timeout=timeout_s, cwd=cwd, stdin=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C.UTF-8", "TZ": "UTC", "COLUMNS": "200"})
        # it warns when the server's patch version is not its own
        out = "\n".join(l for l in done.stdout.split("\n") if not l.startswith("WARNING: cqlsh was built against"))
        return done.returncode, out.lstrip("\n"), done.stderr

    return run


@pytest.fixture(scope="module")
def schema(target, cqlsh):
    """Yields a keyspace with one of each thing that DESCRIBE shows."""
    name = f"cqlsh{os.getpid()}"
    code, _, err = cqlsh(f"""
        CREATE KEYSPACE {name} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}};
        USE {name};
        CREATE TYPE address (street text, zip int, tags frozen<set<text>>);
        CREATE TYPE person (name text, home frozen<address>);
        CREATE TABLE users (org uuid, team int, joined timestamp, name text, motto text static,
            home frozen<address>, tags set<text>, scores map<text, double>, embedding vector<float, 3>,
            PRIMARY KEY ((org, team), joined, name))
            WITH CLUSTERING ORDER BY (joined DESC, name ASC) AND comment = 'who is ''who''' AND gc_grace_seconds = 77;
        CREATE TABLE "MixedCase" ("Key" int PRIMARY KEY, "select" text);
        CREATE TABLE counts (k int PRIMARY KEY, n counter);
        CREATE INDEX users_motto ON users (motto);
        CREATE INDEX users_tags ON users (tags);
        CREATE INDEX users_keys ON users (KEYS(scores));
    """)
    assert code == 0, err
    yield name
    cqlsh(f"DROP KEYSPACE {name}")


def ok(result):
    code, out, err = result
    assert code == 0 and err == "", f"exit {code}\n{out}\n{err}"
    return out


def test_version_and_cluster(cqlsh):
    out = ok(cqlsh("SHOW VERSION; SHOW HOST; DESCRIBE CLUSTER"))
    assert "| Cassandra 5.0" in out and "CQL spec 3.4.7" in out and "Native protocol v5" in out
    assert "Cluster: " in out and "Partitioner: Murmur3Partitioner" in out and "Snitch: " in out


def test_describe_keyspaces(cqlsh, schema):
    words = ok(cqlsh("DESCRIBE KEYSPACES")).split()
    assert schema in words and {"system", "system_schema", "system_auth", "system_traces"} <= set(words)


def test_describe_tables(cqlsh, schema):
    out = ok(cqlsh("DESCRIBE TABLES", "-k", schema))
    assert {"users", "counts", '"MixedCase"'} <= set(out.split())
    assert f"Keyspace {schema}" in ok(cqlsh("DESCRIBE TABLES"))


def test_describe_table(cqlsh, schema):
    out = ok(cqlsh(f"DESCRIBE TABLE {schema}.users"))
    assert f"CREATE TABLE {schema}.users (\n    org uuid,\n    team int,\n    joined timestamp,\n    name text,\n" in out
    assert "motto text static" in out and "home frozen<address>" in out and "embedding vector<float, 3>" in out
    assert "PRIMARY KEY ((org, team), joined, name)\n) WITH CLUSTERING ORDER BY (joined DESC, name ASC)" in out
    assert "AND comment = 'who is ''who'''" in out and "AND gc_grace_seconds = 77" in out
    assert f"CREATE INDEX users_motto ON {schema}.users (motto);" in out
    assert f"CREATE INDEX users_tags ON {schema}.users (values(tags));" in out
    assert f"CREATE INDEX users_keys ON {schema}.users (keys(scores));" in out
    mixed = ok(cqlsh(f'DESCRIBE TABLE {schema}."MixedCase"'))
    assert f'CREATE TABLE {schema}."MixedCase" (\n    "Key" int PRIMARY KEY,\n    "select" text\n)' in mixed


def test_describe_type_and_index(cqlsh, schema):
    out = ok(cqlsh(f"DESCRIBE TYPE {schema}.address"))
    assert f"CREATE TYPE {schema}.address (\n    street text,\n    zip int,\n    tags frozen<set<text>>\n);" in out
    assert set(ok(cqlsh(f"USE {schema}; DESCRIBE TYPES")).split()) >= {"address", "person"}
    out = ok(cqlsh(f"DESCRIBE INDEX {schema}.users_motto"))
    assert out.strip() == f"CREATE INDEX users_motto ON {schema}.users (motto);"
    assert f"CREATE TABLE {schema}.users" in ok(cqlsh(f"USE {schema}; DESCRIBE users"))


def test_describe_keyspace_recreates_it(cqlsh, schema, tmp_path):
    """The output of DESCRIBE KEYSPACE makes the same keyspace when it is run."""
    out = ok(cqlsh(f"DESCRIBE KEYSPACE {schema}"))
    assert out.index("TYPE " + schema + ".address") < out.index("TYPE " + schema + ".person")
    copy = schema + "copy"
    script = tmp_path / "schema.cql"
    script.write_text(out.replace(schema, copy))
    try:
        ok(cqlsh(None, "-f", str(script)))
        assert ok(cqlsh(f"DESCRIBE KEYSPACE {copy}")) == out.replace(schema, copy)
    finally:
        cqlsh(f"DROP KEYSPACE IF EXISTS {copy}")


def test_describe_schema_and_unknown(cqlsh, schema):
    assert f"CREATE KEYSPACE {schema}" in ok(cqlsh("DESCRIBE SCHEMA"))
    assert "CREATE TABLE system.local" in ok(cqlsh("DESCRIBE FULL SCHEMA"))
    code, _, err = cqlsh("DESCRIBE TABLE nope.nope")
    assert code != 0 and "'nope' not found in keyspaces" in err
    code, _, err = cqlsh(f"DESCRIBE TABLE {schema}.nope")
    assert code != 0 and "'nope' not found in keyspace '" in err


def test_select_formatting(cqlsh, schema):
    out = ok(cqlsh(f"""
        CREATE TABLE {schema}.shown (k int PRIMARY KEY, a boolean, b blob, d double, l list<text>, m map<text, int>,
            t timestamp, u uuid, n text, x duration, e date, s set<int>, i inet);
        INSERT INTO {schema}.shown (k, a, b, d, l, m, t, u, x, e, s, i) VALUES (1, true, 0x00ff, 1.5, ['x', 'y'], {{'z': 1}},
            '2024-02-29T12:34:56.789+0000', 9b7f0b2e-8c66-4f30-9b0a-0d1c2b3a4f5e, 1mo2d3s, '2024-02-29', {{2, 1}}, '127.0.0.1');
        SELECT * FROM {schema}.shown;
        EXPAND ON;
        SELECT k, n FROM {schema}.shown;
    """))
    lines = [l.rstrip() for l in out.splitlines() if l.strip()]
    assert [c.strip() for c in lines[0].split("|")] == list("k a b d e i l m n s t u x".split())
    assert set(lines[1]) == {"-", "+"}
    assert [c.strip() for c in lines[2].split("|")] == [
        "1", "True", "0x00ff", "1.5", "2024-02-29", "127.0.0.1", "['x', 'y']", "{'z': 1}", "null", "{1, 2}",
        "2024-02-29 12:34:56.789000+0000", "9b7f0b2e-8c66-4f30-9b0a-0d1c2b3a4f5e", "1mo2d3s"]
    assert lines[3] == "(1 rows)"
    assert "@ Row 1" in out


def test_errors_and_exit_codes(cqlsh, schema, tmp_path):
    code, out, err = cqlsh("SELEC * FROM nothing")
    assert code == 2 and "SyntaxException: line 1:0 no viable alternative at input 'SELEC'" in err
    code, _, err = cqlsh("SELECT * FROM nothing.there")
    assert code == 2 and 'InvalidRequest: Error from server: code=2200 [Invalid query] message="keyspace nothing does not exist"' in err
    code, _, err = cqlsh(f"CREATE KEYSPACE {schema} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    assert code == 2 and f"AlreadyExists: Keyspace '{schema}' already exists" in err
    script = tmp_path / "bad.cql"
    script.write_text("USE system;\nSELECT nope FROM local;\n")
    code, _, err = cqlsh(None, "-f", str(script))
    assert code == 2 and f"{script}:" in err and "InvalidRequest" in err


def test_source_and_use(cqlsh, schema, tmp_path):
    script = tmp_path / "script.cql"
    script.write_text(f"""
        -- a comment
        USE {schema};
        CREATE TABLE sourced (k int PRIMARY KEY, v text); /* another
        one */ INSERT INTO sourced (k, v) VALUES (1, 'semi;colon');
        // and this
        INSERT INTO sourced (k, v) VALUES (2, $$dollar 'quoted'$$);
        CONSISTENCY QUORUM
        SERIAL CONSISTENCY LOCAL_SERIAL
        PAGING 1
        SELECT v FROM sourced WHERE k IN (1, 2);
    """)
    out = ok(cqlsh(f"SOURCE '{script}'"))
    assert "semi;colon" in out and "dollar 'quoted'" in out


def test_tracing(cqlsh, schema):
    code, out, err = cqlsh("TRACING ON; SELECT key FROM system.local")
    assert code == 0 and "local" in out, err


def test_a_trace_tells_what_was_done(cqlsh, schema):
    out = ok(cqlsh(f"USE {schema}; CREATE TABLE traced (k int, c int, PRIMARY KEY (k, c)); "
                   "INSERT INTO traced (k, c) VALUES (1, 1); TRACING ON; SELECT c FROM traced WHERE k = 1"))
    for step in ("Execute CQL3 query", "Parsing SELECT c FROM traced WHERE k = 1", "Preparing statement",
                 "Executing single-partition query on traced", "Read 1 live rows and 0 tombstone cells", "Request complete"):
        assert step in out, out


def test_lightweight_transaction_output(cqlsh, schema):
    out = ok(cqlsh(f"USE {schema}; CREATE TABLE cas (k int PRIMARY KEY, v int); "
                   "INSERT INTO cas (k, v) VALUES (1, 1) IF NOT EXISTS; INSERT INTO cas (k, v) VALUES (1, 2) IF NOT EXISTS"))
    assert "[applied]\n-----------\n      True" in out
    assert " [applied] | k | v\n-----------+---+---\n     False | 1 | 1" in out


def test_batch_and_json(cqlsh, schema):
    out = ok(cqlsh(f"""USE {schema}; CREATE TABLE j (k int PRIMARY KEY, v text);
        BEGIN BATCH INSERT INTO j (k, v) VALUES (1, 'a'); INSERT INTO j (k, v) VALUES (2, 'b'); APPLY BATCH;
        INSERT INTO j JSON '{{"k": 3, "v": "c"}}'; SELECT JSON * FROM j WHERE k = 3; SELECT count(*) FROM j;"""))
    assert '{"k": 3, "v": "c"}' in out and "Warnings :" in out
    assert "Aggregation query used without partition key" in out


@pytest.mark.timeout(900)
def test_copy_from_and_to(cqlsh, schema, tmp_path):
    """100,000 rows in by COPY FROM and out by COPY TO are the same rows."""
    source, back = tmp_path / "in.csv", tmp_path / "out.csv"
    header = ["k", "c", "v", "d", "tags", "m", "t", "b"]
    rows = [[str(i // 100), str(i % 100), f"value, \"{i}\" Ἑλένη", repr(i / 7), f"{{'a', 'b{i % 10}'}}",
             f"{{'x': {i}}}", "2024-02-29 12:34:56.789+0000", "0x" + f"{i:08x}"] for i in range(COPY_ROWS)]
    with open(source, "w", newline="") as f:
        writer = csv.writer(f, escapechar="\\", doublequote=False)
        writer.writerow(header)
        writer.writerows(rows)
    ok(cqlsh(f"""CREATE TABLE {schema}.copied (k int, c int, v text, d double, tags set<text>, m map<text, int>,
        t timestamp, b blob, PRIMARY KEY (k, c))"""))
    columns = ", ".join(header)
    code, out, err = cqlsh(f"COPY {schema}.copied ({columns}) FROM '{source}' WITH HEADER = true AND NUMPROCESSES = 2",
                           timeout_s=600)
    assert code == 0 and f"{COPY_ROWS} rows imported from 1 files" in out, out[-2000:] + err
    code, out, err = cqlsh(f"COPY {schema}.copied ({columns}) TO '{back}' WITH HEADER = true AND DOUBLEPRECISION = 17 "
                           "AND NUMPROCESSES = 2", timeout_s=600)
    assert code == 0 and f"{COPY_ROWS} rows exported to 1 files" in out, out[-2000:] + err
    with open(back, newline="") as f:
        reader = csv.reader(f, escapechar="\\", doublequote=False)
        assert next(reader) == header
        got = {(r[0], r[1]): r for r in reader}
    assert len(got) == COPY_ROWS
    for want in rows:
        row = got[(want[0], want[1])]
        assert row[2] == want[2] and float(row[3]) == float(want[3])
        assert row[4:6] == want[4:6] and row[7] == want[7]
        assert row[6].startswith("2024-02-29 12:34:56.789")
