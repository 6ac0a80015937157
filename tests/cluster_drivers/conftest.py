"""Three nodes on one bucket of MinIO, at addresses of their own and one port, as Cassandra's nodes are."""

import pytest

from minio import Minio
from three_nodes import Cluster


@pytest.fixture(scope="session")
def minio(tmp_path_factory):
    server = Minio(tmp_path_factory.mktemp("minio") / "data").start()
    yield server
    server.close()


@pytest.fixture(scope="module")
def cluster(minio, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    nodes = Cluster(minio, folder, f"s3://{minio.bucket(folder.name.replace('_', '-'))}/store")
    yield nodes
    nodes.close()
