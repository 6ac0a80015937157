"""Objects of the bucket with a flipped bit are not trusted."""

import urllib.error

import pytest

import by_hand
import helenus

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]


def newest_manifest(minio, url):
    """Returns the path and the bytes of the first tablet's newest manifest."""
    newest, number = None, 1
    while True:
        path = f"/{url.removeprefix('s3://')}/tablets/1/manifest/{number:020}.manifest"
        try:
            newest = path, by_hand.request(minio, "GET", path)
        except urllib.error.HTTPError as error:
            # Old ones are deleted.
            if error.code != 404 or newest:
                return newest
        number += 1


def test_a_manifest_with_a_flipped_bit(bucket, nodes, minio):
    node = nodes(bucket, args=["--set", "tablet_count=1"]).start()
    session = node.connect()
    session.execute("CREATE KEYSPACE o WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE o.t (k int PRIMARY KEY, v text)")
    for k in range(20):
        session.execute(f"INSERT INTO o.t (k, v) VALUES ({k}, 'v')")
    node.close_clients()
    assert node.terminate() == 0
    path, raw = newest_manifest(minio, bucket)
    damaged = bytearray(raw)
    damaged[len(raw) // 2] ^= 1
    by_hand.request(minio, "PUT", path, bytes(damaged))

    node.start(wait=False)
    name = path.rsplit("/", 1)[1]
    helenus.wait_until(lambda: f"{name}: the document does not match its checksum" in node.log(1000), 30, "the manifest is named")
    node.kill()
    by_hand.request(minio, "PUT", path, raw)
    node.start()
    assert len(node.connect().execute("SELECT k FROM o.t").all()) == 20


@pytest.mark.parametrize("comment_len", [1, 20_000], ids=["small", "grown"])
def test_a_schema_that_is_deleted(bucket, nodes, minio, comment_len):
    """A store whose schema document is missing is refused; it is not taken for a new one."""
    node = nodes(bucket, args=["--set", "tablet_count=1"]).start()
    session = node.connect()
    session.execute("CREATE KEYSPACE o WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    tables = 5 if comment_len > 1 else 1
    for number in range(tables):
        session.execute(f"CREATE TABLE o.t{number} (k int PRIMARY KEY) WITH comment = '{'c' * comment_len}'")
    node.close_clients()
    assert node.terminate() == 0
    path = f"/{bucket.removeprefix('s3://')}/meta/schema"
    raw = by_hand.request(minio, "GET", path)
    by_hand.request(minio, "DELETE", path)
    node.start(wait=False)
    assert node.process.wait(30) != 0
    assert "meta/schema is missing" in node.log(), node.log()
    by_hand.request(minio, "PUT", path, raw)
    node.start()
    assert len(node.connect().execute("SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'o'").all()) == tables
