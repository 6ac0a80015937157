"""A load on a node with encryption and authentication."""

import pytest

import helenus
import loader
from certificates import Authority

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("trust") / "own").certificate("node", also="IP:127.0.0.1")


@pytest.fixture(scope="module")
def secured(files, tmp_path_factory):
    settings = {"authenticator": "PasswordAuthenticator", "authorizer": "CassandraAuthorizer",
                "tls_certificate": files["certificate"], "tls_key": files["key"]}
    server = helenus.Node(tmp_path_factory.mktemp("secured"), args=helenus.setting_args(settings)).start()
    yield server
    server.close()


LOAD = ("run", "KeyValue", "-n", 500, "-p", 50)


def test_a_load_logs_in_and_encrypts(secured, files, tmp_path):
    ended = loader.load(secured, tmp_path / "out", *LOAD, "-U", "cassandra", "-P", "cassandra",
                        "--tls", "--tls-authority", files["authority"])
    assert sum(operation["count"] for operation in ended.result["operations"]) == 500


@pytest.mark.parametrize("words, said", [
    (("--tls",), "ertificate"),
    ((), "wants clients to use TLS"),
])
def test_what_is_missing_is_told(secured, files, tmp_path, words, said):
    ended = loader.finish(loader.start(secured, tmp_path / "out", *LOAD, "-U", "cassandra", "-P", "cassandra", *words), tmp_path)
    assert ended.status != 0 and said in ended.err + ended.out, ended.err


def test_a_wrong_password_is_told(secured, files, tmp_path):
    words = ("-U", "cassandra", "-P", "wrong", "--tls", "--tls-authority", files["authority"])
    ended = loader.finish(loader.start(secured, tmp_path / "out", *LOAD, *words), tmp_path)
    assert ended.status != 0 and "incorrect" in ended.err, ended.err
