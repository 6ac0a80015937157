"""One MinIO and three brokers for all tests of the log in a topic; a bucket and a topic for each."""

import itertools

import pytest

import helenus
from certificates import Authority
from kafka import Brokers, SecuredBroker
from minio import Minio

NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def minio(tmp_path_factory):
    server = Minio(tmp_path_factory.mktemp("minio") / "data").start()
    yield server
    server.close()


@pytest.fixture(scope="session")
def brokers(tmp_path_factory):
    made = Brokers(tmp_path_factory.mktemp("kafka")).start()
    yield made
    made.close()


@pytest.fixture(scope="session")
def secured_broker(tmp_path_factory):
    folder = tmp_path_factory.mktemp("secured")
    broker = SecuredBroker(folder / "broker", Authority(folder / "authority"))
    broker.start()
    helenus.wait_until(broker.ready, 60, "the broker is ready", 0.5)
    yield broker
    broker.close()


@pytest.fixture
def nodes(minio, brokers, tmp_path):
    """Makes nodes of one store whose log is a topic; ends them."""
    number = next(NUMBERS)
    store, topic = f"s3://{minio.bucket(f'kafka-{number}')}/store", brokers.topic(f"log-{number}")
    made = []

    def make(log_store=topic, settings=()):
        args = ["--log-store", log_store, "--set", "lease=3s", "--name", f"node{len(made)}"]
        for setting in settings:
            args += ["--set", setting]
        node = helenus.Node(tmp_path / f"node{len(made)}", store=store, env=minio.environment(), args=args)
        node.topic = log_store.rpartition("/")[2]
        made.append(node)
        return node

    yield make
    for node in made:
        node.close()
