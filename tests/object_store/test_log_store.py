"""A log that lies in a bucket of its own, or in a folder that the nodes share."""

import pytest

import helenus

pytestmark = pytest.mark.process

ROWS = 60


def insert_rows(node, first):
    session = node.connect()
    session.execute("CREATE KEYSPACE IF NOT EXISTS o WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE IF NOT EXISTS o.t (k int PRIMARY KEY, v int)")
    for k in range(first, first + ROWS):
        session.execute("INSERT INTO o.t (k, v) VALUES (%s, %s)", (k, k))


def rows(node):
    return sorted(row.k for row in node.connect().execute("SELECT k FROM o.t"))


def objects(minio, url):
    """Returns the paths of a bucket's objects, each of which is a folder of MinIO."""
    folder = minio.folder / url.removeprefix("s3://").partition("/")[0]
    return [str(path.relative_to(folder)) for path in folder.rglob("xl.meta")]


@pytest.fixture
def places(request, minio, tmp_path):
    """Returns places for a log."""
    return {"bucket": f"s3://{minio.bucket('logs-' + tmp_path.name.replace('_', '-')[:40].rstrip('-'))}/log",
            "folder": f"file://{tmp_path}/log"}


@pytest.mark.parametrize("place", ["bucket", "folder"])
def test_a_log_apart(bucket, nodes, minio, places, place):
    log = places[place]
    first, second = (nodes(bucket, args=["--log-store", log]) for _ in range(2))
    first.start()
    insert_rows(first, 0)
    assert not [path for path in objects(minio, bucket) if "/logs/" in path], "no log among the data"
    if place == "bucket":
        assert [path for path in objects(minio, log) if "/logs/" in path]
    # The log is required: it alone has the acknowledged writes.
    first.kill()
    first.close_clients()
    without = nodes(bucket)
    without.start(wait=False)
    assert without.process.wait(40) != 0
    assert "start with --log-store" in without.log(), without.log()
    second.start()
    assert rows(second) == list(range(ROWS))
    # Two nodes on it, and one of them dies.
    first.start()
    insert_rows(first, ROWS)
    first.kill()
    first.close_clients()
    helenus.wait_until(lambda: len(rows(second)) == 2 * ROWS, 30, "the dead node's tablets are served")


def test_another_log_is_refused(bucket, nodes, places):
    node = nodes(bucket, args=["--log-store", places["bucket"]]).start()
    assert node.terminate() == 0
    other = nodes(bucket, args=["--log-store", places["folder"]])
    other.start(wait=False)
    assert other.process.wait(40) != 0
    assert "is not there" in other.log() and places["bucket"] in other.log(), other.log()
