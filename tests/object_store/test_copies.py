"""A copy of a store beside the living one: refused until it is a store of its own, and never believed by the living one's nodes."""

import json
import shutil
import subprocess
import time

import pytest

import by_hand
import helenus
from minio import Minio
from test_log_store import ROWS, insert_rows, rows

pytestmark = pytest.mark.process


@pytest.fixture
def copy(minio, bucket):
    """Copies the store's objects to another bucket of the same server; the copy's URL."""
    name = bucket.removeprefix("s3://").partition("/")[0]

    def made():
        shutil.copytree(minio.folder / name, minio.folder / f"copy-of-{name}", dirs_exist_ok=True)
        return f"s3://copy-of-{name}/store"

    return made


def adopt(minio, url, *args):
    return subprocess.run([str(helenus.binary()), "adopt", "--store", url, *args], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**helenus.clean_environment(), **minio.environment()}, timeout=60)


def refused(node):
    """Returns the log of a node that must end at once."""
    node.start(wait=False)
    assert node.process.wait(40) == 1
    return node.log()


def test_a_copy_is_refused_until_it_is_adopted(bucket, nodes, minio, copy):
    living = nodes(bucket, args=["--name", "living"]).start()
    insert_rows(living, 0)
    url = copy()
    node = nodes(url, args=["--name", "stranger"])
    words = refused(node)
    assert f'store = "{url}": this is a copy of store {by_hand.identity(minio, bucket)}' in words, words
    assert f'belongs to bucket "{bucket.split("/")[2]}", prefix "store"' in words and f"helenus adopt --store {url}" in words, words
    done = adopt(minio, url)
    assert done.returncode == 0 and f"helenus serve --store {url}" in done.stdout, done.stdout
    assert by_hand.identity(minio, url) != by_hand.identity(minio, bucket)
    node.start()
    assert rows(node) == list(range(ROWS)), "what was acknowledged before the copy was made"
    assert [n["name"] for n in json.loads(by_hand.document(minio, url, "cluster")[1])["nodes"]] == ["stranger"]
    # The copy and the original are two stores now.
    insert_rows(node, ROWS)
    insert_rows(living, 2 * ROWS)
    assert rows(node) == list(range(2 * ROWS))
    assert rows(living) == [*range(ROWS), *range(2 * ROWS, 3 * ROWS)]
    for one in (living, node):
        assert "refused" not in one.log().partition("is a store of its own")[2] and one.alive()
    # A store that nodes are running on is not adopted.
    done = adopt(minio, bucket)
    assert done.returncode == 1 and "is running on it: stop its nodes first" in done.stdout, done.stdout
    assert rows(living) == [*range(ROWS), *range(2 * ROWS, 3 * ROWS)]


def test_what_was_restored_in_place_is_a_copy(bucket, nodes, minio):
    node = nodes(bucket).start()
    insert_rows(node, 0)
    assert node.terminate() == 0
    node.close_clients()
    path = by_hand.path_of(bucket, "FORMAT")
    content = by_hand.request(minio, "GET", path)
    # The times of objects are whole seconds.
    time.sleep(1.1)
    by_hand.request(minio, "PUT", path, content)
    words = refused(node)
    assert "its object FORMAT was written at" in words and "helenus adopt" in words, words
    assert adopt(minio, bucket).returncode == 0
    assert rows(node.start()) == list(range(ROWS))


def test_a_store_of_before_gets_an_identity(bucket, nodes, minio):
    node = nodes(bucket).start()
    insert_rows(node, 0)
    node.kill()
    node.close_clients()
    by_hand.request(minio, "DELETE", by_hand.path_of(bucket, "PLACE"))

    def as_before(content):
        document = json.loads(content)
        document["format"] = 1
        document.pop("store")
        document["nodes"][0].pop("credentials")
        return json.dumps(document).encode()

    by_hand.change_document(minio, bucket, "cluster", as_before)
    assert rows(node.start()) == list(range(ROWS))
    document = json.loads(by_hand.document(minio, bucket, "cluster")[1])
    assert (document["format"], document["store"]) == (2, by_hand.identity(minio, bucket))


def test_documents_of_another_store_are_refused(bucket, nodes, minio):
    node = nodes(bucket).start()
    identity = by_hand.identity(minio, bucket)
    other = "00000000-0000-4000-8000-000000000000"
    by_hand.change_document(minio, bucket, "cluster", lambda content: content.replace(identity.encode(), other.encode()))
    words = refused(nodes(bucket))
    assert f"the cluster document is that of store {other}, and lies in store {identity}" in words and "helenus adopt" in words, words
    helenus.wait_until(lambda: "the cluster document is invalid" in node.log(), what="the running node says so")
    insert_rows(node, 0)
    assert rows(node) == list(range(ROWS)), "and goes on with what it knows"


def test_the_log_of_the_living_store_is_no_copys(bucket, nodes, minio, copy, tmp_path):
    log = f"s3://{minio.bucket('log-of-' + bucket.split('/')[2])}/log"
    apart = lambda url: ["--log-store", url]
    living = nodes(bucket, args=apart(log)).start()
    insert_rows(living, 0)
    url = copy()
    done = adopt(minio, url, *apart(log))
    assert done.returncode == 1 and "copy the log as well" in done.stdout, done.stdout
    shutil.copytree(minio.folder / f"log-of-{bucket.split('/')[2]}", minio.folder / f"log-copy-{bucket.split('/')[2]}")
    log_copy = log.replace("log-of", "log-copy")
    done = adopt(minio, url, *apart(log_copy))
    assert done.returncode == 0, done.stdout
    assert "belongs to store" in refused(nodes(url, args=apart(log)))
    node = nodes(url, args=apart(log_copy)).start()
    insert_rows(node, ROWS)
    assert rows(node) == list(range(2 * ROWS)) and rows(living) == list(range(ROWS))


def test_nobody_believes_a_copy_that_cannot_be_told(bucket, nodes, minio, tmp_path):
    """The disk of the object store is copied, to be served elsewhere: names, times and identities are all the same."""
    secret = ["--set", "cluster_secret=one-for-both"]
    pair = [nodes(bucket, args=["--name", name, *secret]).start() for name in ("one", "two")]
    insert_rows(pair[0], 0)
    settled = lambda: all(node.metrics()["helenus_cluster_tablets_owned"] == 8 and node.metrics()["helenus_cluster_tablets_moving"] == 0
                          for node in pair)
    helenus.wait_until(settled, 30, "each has its share")
    name = bucket.split("/")[2]
    other = Minio(tmp_path / "other-minio")
    temporary = shutil.ignore_patterns("tmp")  # Files there come and go.
    shutil.copytree(minio.folder / ".minio.sys", other.folder / ".minio.sys", ignore=temporary)
    shutil.copytree(minio.folder / name, other.folder / name)
    other.start()
    try:
        stranger = nodes(bucket, other.environment(), args=["--name", "stranger", *secret]).start()
        took_over = lambda: stranger.metrics()["helenus_cluster_tablets_owned"] == 16
        session = pair[0].connect()
        acknowledged = list(range(ROWS))

        def write_until(done):
            while not done():
                session.execute("INSERT INTO o.t (k, v) VALUES (%s, %s)", (len(acknowledged), 1), timeout=2)
                acknowledged.append(len(acknowledged))

        write_until(took_over)
        # The copy's document has no other nodes any more, and the other nodes do not know of the copy.
        assert rows(stranger) == list(range(ROWS)), "nothing of what was written since"
        insert_rows(stranger, 1_000_000)
        stranger.kill()
        began = time.monotonic()
        write_until(lambda: time.monotonic() - began > 0.5)
        for node in pair:
            assert rows(node) == acknowledged and settled()
        words = [node.log() for node in (*pair, stranger)]
        assert any("a node was refused that is not in the cluster document" in text and "stranger" in text for text in words[:2]), words
        assert "a node has refused this one" in words[2] and "not in the cluster document" in words[2], words
    finally:
        other.close()
