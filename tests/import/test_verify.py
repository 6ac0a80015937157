"""`helenus import --verify` finds and names each difference between small SSTables and a node, and nothing else."""

import json
import shutil
import subprocess

import pytest

import cassandras
import features
import helenus
from importing import TIMEOUT_S, command, run_import
from test_golden import FILES, RELEASE, WHOLE, laid_out, statements

pytestmark = pytest.mark.process

KEYSPACE = features.KEYSPACE
OPTIONS = ["--pause", "0s"]


@pytest.fixture
def session(tmp_path):
    """Returns a session of a node without data, with all tables."""
    node = helenus.Node(tmp_path / "node").start()
    session = node.connect()
    for statement in features.schema(RELEASE) + [statement for statement in statements() if statement.startswith("ALTER")]:
        session.execute(statement)
    session.node = node
    yield session
    node.close()


def verify(session, data, *options, exit_code=0):
    """Compares a folder with the node. Returns the report."""
    done = subprocess.run(command(session.node, data, "--verify", "--no-schema", "--json", *OPTIONS, *options), text=True, capture_output=True,
                          timeout=TIMEOUT_S, cwd=session.node.log_path.parent)
    assert done.returncode == exit_code, (done.stdout + done.stderr)[-5000:]
    return json.loads(done.stdout) if done.stdout else done.stderr


def named(report):
    return [difference for table in report["tables"] for difference in table["named"]]


@pytest.mark.parametrize("version", WHOLE)
def test_import_is_equal_to_its_source(version, session, tmp_path):
    data = laid_out(version, tmp_path / version)
    run_import(session.node, data, "--no-schema", "--counters", "replace")
    report = verify(session, data)
    assert report["differences"] == 0
    assert sum(table["cells"] for table in report["tables"]) > 0
    assert all(table["is_complete"] and table["cells_only_in_target"] == 0 for table in report["tables"]), report


def test_target_without_rows_lacks_each_row(session, tmp_path):
    report = verify(session, laid_out("nb", tmp_path / "nb"), "--table", f"{KEYSPACE}.compressed_zstd", exit_code=1)
    [table] = report["tables"]
    assert table["differences"] == table["rows"] > 0
    assert {difference["problem"] for difference in table["named"]} == {"the row is missing on the target"}
    few = verify(session, tmp_path / "nb", "--table", f"{KEYSPACE}.compressed_zstd", "--differences-max", "1", exit_code=1)
    assert few["differences"] == report["differences"] and len(named(few)) == 1


def test_missing_table_is_an_error(session, tmp_path):
    data = laid_out("nb", tmp_path / "nb")
    session.execute(f"DROP TABLE {KEYSPACE}.compressed_zstd")
    said = verify(session, data, "--table", f"{KEYSPACE}.compressed_zstd", exit_code=2)
    assert "import it first" in said


def test_differences_after_an_import_are_named(session, tmp_path):
    data = laid_out("oa", tmp_path / "oa")
    run_import(session.node, data, "--no-schema")
    session.execute(f"DELETE v FROM {KEYSPACE}.deletions WHERE k = 7 AND a = 1 AND b = 'q' AND c = 1")
    session.execute(f"DELETE FROM {KEYSPACE}.deletions WHERE k = 7 AND a = 1 AND b = 'q' AND c = 2")
    session.execute(f"UPDATE {KEYSPACE}.deletions SET v = 'newer' WHERE k = 7 AND a = 2 AND b = 'p' AND c = 0")
    session.execute(f"INSERT INTO {KEYSPACE}.deletions (k, a, b, c, v) VALUES (99, 0, '', 0, 'only here')")
    report = verify(session, data, "--table", f"{KEYSPACE}.deletions", exit_code=1)
    found = [(difference["key"], difference["column"], difference["problem"]) for difference in named(report)]
    assert found == [("k = 7, a = 1, b = 'q', c = 1", "v", "the cell is missing on the target"),
                     ("k = 7, a = 1, b = 'q', c = 2", None, "the row is missing on the target")]
    [table] = report["tables"]
    assert (table["newer"], table["rows_only_in_target"], table["cells_only_in_target"]) == (1, 1, 1)


def test_deleted_cells_on_the_target_are_named(session, tmp_path):
    for statement in features.rounds(RELEASE)[0]:
        if "deletions" in statement:
            session.execute(statement)
    data = laid_out("oa", tmp_path / "oa")
    options = ["--table", f"{KEYSPACE}.deletions", "--differences-max", "10000"]
    report = verify(session, data, *options, exit_code=1)
    resurrected = {difference["key"] for difference in named(report) if difference["problem"].startswith("the source deleted")}
    # Deletions of a partition, a row, ranges, a cell, elements and a static cell.
    for key in ["k = 0, a = 0, b = 'p', c = 0", "k = 1, a = 3, b = 'q', c = 1", "k = 2, a = 0, b = 'q', c = 0", "k = 3, a = 2, b = 'r', c = 2",
                "k = 5, a = 1, b = 'p', c = 1", "k = 6, a = 0, b = 'p', c = 0", "k = 6, a = 0, b = 'p', c = 1", "k = 3"]:
        assert key in resurrected
    assert not any(key.startswith("k = 7, a = 1") for key in resurrected)
    run_import(session.node, data, "--no-schema")
    assert verify(session, data, *options)["differences"] == 0


def test_changed_counter_is_named(session, tmp_path):
    data = laid_out("nb", tmp_path / "nb")
    options = ["--table", f"{KEYSPACE}.counters"]
    run_import(session.node, data, "--no-schema", *options)
    row = session.execute(f"SELECT k, c, n FROM {KEYSPACE}.counters").one()
    session.execute(f"UPDATE {KEYSPACE}.counters SET n = n + 1 WHERE k = {row.k} AND c = '{row.c}'")
    [difference] = named(verify(session, data, *options, exit_code=1))
    assert (difference["column"], difference["source"], difference["target"]) == ("n", mentioned(difference["source"], row.n or 0), str((row.n or 0) + 1))


def mentioned(text, number):
    """Returns the text of a cell, which begins with the number."""
    assert text.startswith(f"{number} written at ")
    return text


def test_compact_table_without_last_clustering_is_compared(session, tmp_path):
    """A row of a compact table may lack its last clustering columns, and is a prefix of others."""
    table = f"{KEYSPACE}.compact_dense"
    [create] = [statement for statement in features.schema(cassandras.release_named("3.11")) if statement.startswith("CREATE TABLE compact_dense")]
    session.execute(create)
    shutil.copytree(FILES / "me/compact_dense", tmp_path / f"me/{KEYSPACE}/compact_dense-{'0' * 32}")
    run_import(session.node, tmp_path / "me", "--no-schema")
    report = verify(session, tmp_path / "me")
    assert report["differences"] == 0 and report["tables"][0]["rows"] > 0
    session.execute(f"DELETE FROM {table} WHERE k = 1 AND c = 7 AND d = 'none'")
    session.execute(f"INSERT INTO {table} (k, c, d, v) VALUES (1, 7, '', 1)")
    session.execute(f"UPDATE {table} USING TIMESTAMP {features.NOW_US} SET v = 8 WHERE k = 1 AND c = 2 AND d = 'x'")
    assert verify(session, tmp_path / "me", exit_code=1)["differences"] == 1
    session.execute(f"DELETE FROM {table} WHERE k = 1 AND c = 7")
    found = {(difference["key"], difference["problem"]) for difference in named(verify(session, tmp_path / "me", exit_code=1))}
    assert ("k = 1, c = 7", "the row is missing on the target") in found


@pytest.mark.parametrize("name", ["compact_keys", "compact_static"])
def test_compact_table_without_rows_is_compared(name, session, tmp_path):
    """Hidden columns can't be selected."""
    [create] = [statement for statement in features.schema(cassandras.release_named("3.11")) if statement.startswith(f"CREATE TABLE {name} ")]
    session.execute(create)
    folder = tmp_path / f"me/{KEYSPACE}/{name}-{'0' * 32}"
    folder.mkdir(parents=True)
    (folder / "schema.cql").write_text(create.replace(name, f"{KEYSPACE}.{name}") + ";")
    assert verify(session, tmp_path / "me")["differences"] == 0
