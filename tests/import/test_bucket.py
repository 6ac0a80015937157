"""`helenus import` reads sources in a bucket: folders of SSTables and storages of Medusa, in a real S3 server."""

import pytest

import answers
import by_hand
import features
import helenus
import medusa_storage
from agreement import differences
from importing import run_import
from minio import Minio
from test_golden import WHOLE, laid_out, session, untimed, written  # noqa: F401: fixtures
from test_medusa import NODES, nodes_of, schema_of

pytestmark = pytest.mark.process

BUCKET, PREFIX, VERSION = "cassandra", "of/shop", "nb"


@pytest.fixture(scope="module")
def minio(tmp_path_factory):
    server = Minio(tmp_path_factory.mktemp("minio") / "data").start()
    server.bucket(BUCKET)
    yield server
    server.close()


@pytest.fixture
def reached(minio, monkeypatch):
    """Sets the variables with which the commands reach the server."""
    for name, value in minio.environment().items():
        monkeypatch.setenv(name, value)
    return minio


def put(server, folder, prefix):
    """Writes all files of a folder as objects. Returns their URL."""
    for file in folder.rglob("*"):
        if file.is_file():
            by_hand.request(server, "PUT", f"/{BUCKET}/{prefix}/{file.relative_to(folder)}", file.read_bytes())
    return f"s3://{BUCKET}/{prefix}"


def check(node, tables, written):
    wrong = differences({table: written[table] for table in tables}, untimed(answers.of(node)))
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:20])


@pytest.mark.parametrize("version", ["nb", "da"])
def test_data_folder_in_a_bucket(version, session, reached, written, tmp_path):  # noqa: F811
    url = put(reached, laid_out(version, tmp_path / version), f"{PREFIX}/data-{version}")
    run_import(session.node, url, "--no-schema", "--counters", "replace")
    check(session.node, WHOLE[version], written)
    run_import(session.node, url + "/", "--no-schema", "--verify")


def test_storage_of_medusa_in_a_bucket(session, reached, written, tmp_path):  # noqa: F811
    storage, schema = medusa_storage.Storage(tmp_path / "storage"), schema_of(session)
    storage.back_up("full", schema, nodes_of(WHOLE[VERSION]), is_differential=False)
    storage.back_up("tuesday", schema, nodes_of(WHOLE[VERSION]), is_differential=True)
    url = put(reached, storage.folder, f"{PREFIX}/live")
    target = helenus.Node(tmp_path / "target").start()
    try:
        for backup in ("full", "tuesday"):
            run_import(target, url, "--backup", backup, "--counters", "replace")
            check(target, WHOLE[VERSION], written)
        run_import(target, f"{url}/{NODES[0]}", "--backup", "full", "--dry-run")
    finally:
        target.close()


def test_errors_name_the_object(session, reached, tmp_path):  # noqa: F811
    data = laid_out(VERSION, tmp_path / VERSION)
    [file] = data.glob(f"{features.KEYSPACE}/compressed_zstd-*/*-Data.db")
    file.write_bytes(file.read_bytes()[:-10])
    url = put(reached, data, f"{PREFIX}/cut")
    said = run_import(session.node, url, "--no-schema", "--table", f"{features.KEYSPACE}.compressed_zstd", exit_code=1)
    assert f"{url}/{file.relative_to(data)}" in said
    nowhere = f"s3://{BUCKET}/{PREFIX}/nowhere"
    assert f"{nowhere}: no tables are here" in run_import(session.node, nowhere, exit_code=1)
    assert "s3://no-such-bucket" in run_import(session.node, "s3://no-such-bucket/x", exit_code=1)
    assert "unknown scheme ftp" in run_import(session.node, "ftp://host/x", exit_code=1)
