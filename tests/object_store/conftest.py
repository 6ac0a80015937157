"""One MinIO for all tests of the object store, and a bucket for each."""

import itertools

import pytest

import helenus
from minio import Minio

NAMES = (f"bucket-{n}" for n in itertools.count(1))


@pytest.fixture(scope="session")
def shared_minio(tmp_path_factory):
    server = Minio(tmp_path_factory.mktemp("minio") / "data").start()
    yield server
    server.close()


@pytest.fixture
def minio(shared_minio):
    """Yields the server, and resumes it after each test."""
    yield shared_minio
    shared_minio.resume()


@pytest.fixture
def bucket(minio):
    """Returns the URL of an empty bucket."""
    return f"s3://{minio.bucket(next(NAMES))}/store"


@pytest.fixture
def nodes(minio, tmp_path):
    """Makes nodes on a URL; ends them."""
    made = []

    def make(url, environment=None, args=()):
        folder = tmp_path / f"node{len(made)}"
        node = helenus.Node(folder, store=url, env=environment or minio.environment(), args=args)
        made.append(node)
        return node

    yield make
    for node in made:
        node.close()
