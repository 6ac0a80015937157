"""`helenus import` brings small SSTables that nodes of Cassandra wrote: afterwards, a node answers what a node answers to which drivers wrote the
same. The files are those of the crate helenus-sstable, so no Cassandra is needed.
"""

import re
import shutil

import pytest

import answers
import cassandras
import features
import helenus
from agreement import differences
from importing import run_import

pytestmark = pytest.mark.process

FILES = helenus.ROOT / "crates/helenus-sstable/testdata/files"
# Tables whose files hold all that the statements write, by the version of the files.
WHOLE = {
    "da": ["deletions", "counters", "deep"],
    "oa": ["collections", "deletions"],
    "nb": ["collections", "deletions", "kinds", "counters", "sparse", "compressed_lz4_ratio", "compressed_snappy", "compressed_deflate", "compressed_zstd",
           "compressed_noop"],
    "me": ["collections", "deletions", "counters"],
}
RELEASE = cassandras.release_named("4.0")


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


def statements():
    """Returns the statements that change types and tables, or write the tables of WHOLE."""
    names = re.compile(r"^ALTER|\b(" + "|".join({table for tables in WHOLE.values() for table in tables}) + r")\b")
    return [statement for some in features.rounds(RELEASE) for statement in some if names.search(statement)]


def untimed(found):
    """Returns answers without the times at which values end: those of the files were computed when they were written."""
    return {table: [{part: cells for part, cells in row.items() if part != "ends_s"} for row in rows] for table, rows in found.items()}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Returns the answers of a node to which a driver wrote."""
    node = helenus.Node(tmp_path_factory.mktemp("written")).start()
    session = node.connect()
    for statement in features.schema(RELEASE) + statements():
        session.execute(statement)
    found = answers.of(node)
    node.close()
    return untimed(found)


def laid_out(version, folder):
    """Copies files into a data folder as Cassandra's. Returns it."""
    for table in WHOLE[version]:
        shutil.copytree(FILES / version / table, folder / f"{features.KEYSPACE}/{table}-{'0' * 32}")
    return folder


@pytest.mark.parametrize("version", WHOLE)
def test_files_are_imported_and_again(version, session, written, tmp_path):
    data = laid_out(version, tmp_path / version)
    expected = {table: written[table] for table in WHOLE[version]}
    for _ in range(2):
        run_import(session.node, data, "--no-schema", "--counters", "replace")
        found = untimed(answers.of(session.node))
        wrong = differences(expected, found)
        assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:20])
        assert all(not rows for table, rows in found.items() if table not in expected)


def test_a_cut_file_is_refused_by_name(session, tmp_path):
    data = laid_out("nb", tmp_path / "nb")
    [file] = data.glob(f"{features.KEYSPACE}/compressed_zstd-*/*-Data.db")
    file.write_bytes(file.read_bytes()[:-10])
    said = run_import(session.node, data, "--no-schema", "--table", f"{features.KEYSPACE}.compressed_zstd", exit_code=1)
    assert str(file) in said


def test_a_dry_run_sends_nothing(session, tmp_path):
    said = run_import(session.node, laid_out("oa", tmp_path / "oa"), "--no-schema", "--dry-run")
    assert "deletions" in said
    assert session.execute(f"SELECT * FROM {features.KEYSPACE}.deletions").one() is None
