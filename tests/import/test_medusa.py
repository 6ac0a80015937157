"""`helenus import --backup` brings the backups of Medusa, with their schema, of all nodes at once."""

import json
import pathlib
import sys

import pytest

import answers
import cassandras
import features
import helenus
import medusa_storage
from agreement import differences
from importing import run_import
from made import EARLY, MONDAY, made
from test_golden import FILES, WHOLE, session, untimed, written  # noqa: F401: fixtures
from toolchains import CACHE, built_once, run

pytestmark = pytest.mark.process

VERSION = "nb"
NODES = ("cassandra1.shop", "cassandra2.shop")
# The release of Medusa that writes storages itself.
MEDUSA = "0.31.0"


def files_of(table):
    return [file for file in (FILES / VERSION / table).iterdir() if file.name != "lines"]


def nodes_of(tables):
    """Returns the files of each node, by keyspace and table."""
    parts = {table: medusa_storage.divided(files_of(table)) for table in tables}
    return {fqdn: {(features.KEYSPACE, table): part[number] for table, part in parts.items()} for number, fqdn in enumerate(NODES)}


def schema_of(session):
    """Returns the schema as Medusa writes it: that of the driver, with keyspaces of the system."""
    session.cluster.refresh_schema_metadata()
    return "\n\n".join(keyspace.export_as_string() for name, keyspace in session.cluster.metadata.keyspaces.items() if name != "system_traces")


@pytest.fixture
def storage(session, tmp_path):  # noqa: F811
    """Returns a storage with a full backup, and two differential ones. The second has more tables."""
    made, schema = medusa_storage.Storage(tmp_path / "storage"), schema_of(session)
    made.back_up("full", schema, nodes_of(WHOLE[VERSION]), is_differential=False)
    made.back_up("monday", schema, nodes_of(WHOLE[VERSION][:2]), is_differential=True)
    made.back_up("tuesday", schema, nodes_of(WHOLE[VERSION]), is_differential=True)
    return made


@pytest.fixture
def target(tmp_path):
    node = helenus.Node(tmp_path / "target").start()
    yield node
    node.close()


@pytest.mark.parametrize("backup", ["full", "monday", "tuesday"])
def test_backup_is_imported_with_its_schema(backup, storage, target, written):  # noqa: F811
    tables = WHOLE[VERSION][:2] if backup == "monday" else WHOLE[VERSION]
    run_import(target, storage.folder, "--backup", backup)
    wrong = differences({table: written[table] for table in tables}, untimed(answers.of(target)))
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:20])
    assert all(not rows for table, rows in answers.of(target).items() if table not in tables)
    run_import(target, storage.folder, "--backup", backup, "--verify")


def test_node_may_be_imported_alone(storage, target):
    said = run_import(target, storage.folder / NODES[1], "--backup", "tuesday", "--table", f"{features.KEYSPACE}.collections")
    assert f"{features.KEYSPACE}.collections: " in said


def test_damaged_backups_are_refused_by_name(storage, target):
    folder = storage.folder / NODES[0] / f"data/{features.KEYSPACE}/deletions-{medusa_storage.ID}"
    [file] = folder.glob("*-Data.db")
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    said = run_import(target, storage.folder, "--backup", "tuesday", exit_code=1)
    assert f"{file}: the file has {len(content) - 1} bytes" in said
    file.unlink()
    assert f"{file}: the file is missing" in run_import(target, storage.folder, "--backup", "tuesday", exit_code=1)
    (storage.folder / NODES[1] / "full/meta/manifest.json").unlink()
    assert f"backup 'full' of {NODES[1]} has not ended" in run_import(target, storage.folder, "--backup", "full", exit_code=1)
    assert "the backups are full, monday, tuesday" in run_import(target, storage.folder, "--backup", "friday", exit_code=1)


@pytest.fixture(scope="module")
def packages():
    """Returns the folder with Medusa and what it needs, which is brought the first time."""
    out = CACHE / "import" / f"medusa-{MEDUSA}"
    with built_once(out) as is_due:
        if is_due:
            run([sys.executable, "-m", "pip", "install", "-q", "--target", str(out), f"cassandra-medusa=={MEDUSA}"], CACHE)
    return out


def back_up_by_medusa(packages, storage, data, snapshot, backup, is_differential, schema):
    order = {"packages": str(packages), "storage": str(storage), "data": str(data.data), "fqdn": NODES[0], "snapshot": snapshot, "backup": backup,
             "is_differential": is_differential, "schema": schema}
    run([sys.executable, str(pathlib.Path(__file__).with_name("medusa_writes.py")), json.dumps(order)], CACHE)


@pytest.mark.timeout(0)
def test_storage_that_medusa_wrote(packages, session, target, tmp_path):  # noqa: F811
    """Medusa's own classes back up the snapshots of a Cassandra. The second differential backup has files of the first."""
    data, schema = made(cassandras.release_named("4.0")), schema_of(session)
    for snapshot, backup, is_differential in ((MONDAY, "full", False), (EARLY, "first", True), (MONDAY, "second", True)):
        back_up_by_medusa(packages, tmp_path, data, snapshot, backup, is_differential, schema)
    # Medusa's schema lacks the drops of columns, so that cells from before them come in.
    options = ["--exclude", f"{features.KEYSPACE}.evolving", "--counters", "replace"]
    expected = {table: rows for table, rows in data.answers().items() if table != "evolving"}
    for backup in ("first", "full", "second"):
        said = run_import(target, tmp_path / "bucket/live", "--backup", backup, *options)
        assert "based_w of moved.based" in said
    wrong = differences(expected, answers.of(target))
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:20])
