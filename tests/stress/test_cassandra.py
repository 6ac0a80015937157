"""Loads on Apache Cassandra 5, which are those of the other tests."""

import shutil
import subprocess

import pytest

import helenus
import loader
from toolchains import CACHE, HERE, require

pytestmark = pytest.mark.process

START_TIMEOUT_S = 600  # the first start brings Cassandra


@pytest.fixture(scope="module")
def cassandra(tmp_path_factory):
    """Yields one node of Cassandra with its own IP address."""
    require("Apache Cassandra", "java", "mvn")
    folder = tmp_path_factory.mktemp("cassandra")
    server = helenus.Target("127.0.0.59", helenus.free_port())
    log = open(folder / "start.log", "wb")
    process = subprocess.Popen(
        [HERE.parent / "bench/cassandra/start.sh", CACHE / "cassandra", folder / "data", server.host, str(server.port), "1G"],
        stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def ready():
        assert process.poll() is None, (folder / "start.log").read_text()[-3000:]
        return helenus.answers_options(server.host, server.port)

    helenus.wait_until(ready, START_TIMEOUT_S, "Cassandra ready", interval_s=0.5)
    yield server
    server.close()
    process.kill()
    process.wait()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.timeout(START_TIMEOUT_S + 120)
@pytest.mark.parametrize("workload, words", [
    ("kv", ["-t", 2, "-c", 8, "-p", 500]),
    ("many-tables", ["-t", 2, "-c", 8, "-p", 200, "--workload.tables=5"]),
    ("user-quorum", ["-t", 2, "-c", 8, "-p", 100, "--cl", "quorum"]),
    ("lwt", ["-t", 1, "-c", 4, "-p", 50]),
    ("collections", ["-t", 2, "-c", 4, "-p", 50]),
    ("scan", ["-t", 1, "-c", 4, "-p", 1000, "--workload.ranges=16"]),
])
def test_workloads_run_on_cassandra_too(cassandra, tmp_path, workload, words):
    words = [workload, "--keyspace", "s_" + workload.replace("-", "_"), *words]
    loader.load(cassandra, tmp_path / "p", "populate", *words)
    verified = loader.load(cassandra, tmp_path / "v", "verify", *words)
    assert verified.result["endpoint"]["release_version"].startswith("5.")
    ended = loader.load(cassandra, tmp_path / "r", "run", *words, "-d", 2)
    assert sum(operation["count"] for operation in ended.result["operations"]) > 20
    assert ended.result["reads"]["corrupt"] == 0
