"""TLS of clients: by the driver and by the shell, with certificates of clients and without, beside plain ones and alone."""

import signal
import socket
import ssl
import struct
import subprocess

import pytest
from cassandra.cluster import Cluster, NoHostAvailable

import helenus
from certificates import Authority

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("trust") / "own")


@pytest.fixture(scope="module")
def files(authority):
    return authority.certificate("node", also="DNS:localhost,IP:127.0.0.1")


def serve(folder, files, *names, **more):
    settings = {f"tls_{name}": files[name] for name in ("certificate", "key", *names)} | more
    return helenus.Node(folder, args=helenus.setting_args(settings))


@pytest.fixture
def node(tmp_path, files):
    server = serve(tmp_path, files).start()
    yield server
    server.close()


def context(files, shown=None):
    made = ssl.create_default_context(cafile=files["authority"])
    made.check_hostname = False
    if shown:
        made.load_cert_chain(shown["certificate"], shown["key"])
    return made


def connect(server, ssl_context, **options):
    cluster = Cluster([server.host], port=server.port, ssl_context=ssl_context, **options)
    try:
        return cluster.connect()
    except Exception:
        cluster.shutdown()
        raise


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("tls", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_the_driver_encrypts(node, files, version, tls):
    encrypted = context(files)
    encrypted.maximum_version = tls
    session = connect(node, encrypted, protocol_version=version)
    session.execute("CREATE KEYSPACE IF NOT EXISTS k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE IF NOT EXISTS k.t (k int PRIMARY KEY, v blob)")
    large = bytes(range(256)) * 20_000
    insert = session.prepare("INSERT INTO k.t (k, v) VALUES (?, ?)")
    for future in [session.execute_async(insert, (k, large)) for k in range(8)]:
        future.result()
    assert [row.v == large for row in session.execute("SELECT v FROM k.t")] == [True] * 8
    clients = session.execute("SELECT ssl_enabled, ssl_protocol, ssl_cipher_suite FROM system_views.clients").all()
    protocol = {"TLSv1_2": "TLSv1.2", "TLSv1_3": "TLSv1.3"}[tls.name]
    assert {(c.ssl_enabled, c.ssl_protocol) for c in clients} == {(True, protocol)}
    assert all(c.ssl_cipher_suite.startswith("TLS_") for c in clients)


def test_a_plain_client_is_told_what_is_wanted(node):
    with socket.create_connection((node.host, node.port), timeout=10) as plain:
        body = struct.pack(">H", 1) + b"\x00\x0bCQL_VERSION\x00\x053.0.0"
        plain.sendall(struct.pack(">BBhBi", 4, 0, 1, 1, len(body)) + body)
        answer = b""
        while chunk := plain.recv(4096):
            answer += chunk
    assert answer[0] == 0x84 and answer[4] == 0x00
    assert b"This server wants clients to use TLS" in answer
    with pytest.raises(NoHostAvailable):
        connect(node, None)


def test_who_is_trusted(node, tmp_path):
    with pytest.raises(NoHostAvailable, match="CERTIFICATE_VERIFY_FAILED"):
        connect(node, context(Authority(tmp_path / "other").certificate("node")))


def test_garbage_ends_its_own_connection(node, files):
    for garbage in (b"\x16", b"\x16\x03\x01\xff\xff" + b"x" * 70_000, b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x05hello"):
        with socket.create_connection((node.host, node.port), timeout=10) as odd:
            try:
                odd.sendall(garbage)
                odd.shutdown(socket.SHUT_WR)
                while odd.recv(4096):
                    pass
            # The server may be done with it before all is sent.
            except OSError as ended:
                assert not isinstance(ended, TimeoutError)
    assert connect(node, context(files)).execute("SELECT key FROM system.local").one().key == "local"


def test_optional_serves_both(tmp_path, files):
    server = serve(tmp_path, files, tls_optional="true").start()
    plain, encrypted = server.connect(), connect(server, context(files))
    shown = encrypted.execute("SELECT ssl_enabled FROM system_views.clients").all()
    assert {c.ssl_enabled for c in shown} == {True, False}
    assert plain.execute("SELECT key FROM system.local").one()
    server.close()


def test_clients_show_certificates(tmp_path, authority, files):
    server = serve(tmp_path, files, "authority").start()
    shown = authority.certificate("client")
    assert connect(server, context(files, shown)).execute("SELECT key FROM system.local").one()
    for other in (None, Authority(tmp_path / "other").certificate("client")):
        with pytest.raises(NoHostAvailable):
            connect(server, context(files, other))
    server.close()


@pytest.mark.parametrize("reload", ["50ms", "60m"], ids=["in time", "on SIGHUP"])
def test_renewed_certificates_are_taken_up(tmp_path, reload):
    own = Authority(tmp_path / "own")
    files = own.certificate("node", also="IP:127.0.0.1")
    server = serve(tmp_path / "store", files, tls_reload=reload).start()

    def shown():
        plain = ssl.create_default_context()
        plain.check_hostname, plain.verify_mode = False, ssl.CERT_NONE
        with socket.create_connection((server.host, server.port), timeout=10) as raw, plain.wrap_socket(raw) as encrypted:
            return encrypted.getpeercert(binary_form=True)

    def tell():
        if reload == "60m":
            server.process.send_signal(signal.SIGHUP)

    before, session = shown(), connect(server, context(files))
    files["certificate"].write_text("half a file")
    tell()
    helenus.wait_until(lambda: "are not used" in server.log(), what="a warning")
    assert shown() == before
    own.certificate("node", also="IP:127.0.0.1")
    tell()
    helenus.wait_until(lambda: shown() != before, what="the new certificate")
    assert session.execute("SELECT key FROM system.local").one(), "connections from before go on"
    server.close()


def shell(server, *args):
    command = [str(helenus.binary()), "shell", f"{server.host}:{server.port}", "-e", "SELECT key FROM system.local", *args]
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=30)


def test_the_shell_encrypts(node, files, tmp_path):
    done = shell(node, "--tls", "--tls-authority", files["authority"])
    assert done.returncode == 0 and "local" in done.stdout
    assert "This server wants clients to use TLS" in shell(node).stderr
    other = Authority(tmp_path / "other").certificate("node")
    assert "invalid peer certificate" in shell(node, "--tls", "--tls-authority", other["authority"]).stderr


def test_the_shell_shows_a_certificate(tmp_path, authority, files):
    server = serve(tmp_path / "store", files, "authority").start()
    trust = ("--tls", "--tls-authority", files["authority"])
    own, other = authority.certificate("person"), Authority(tmp_path / "other").certificate("person")
    for names in (("--tls-certificate", "--tls-key"), ("--usercert", "--userkey")):
        shown = shell(server, *trust, names[0], own["certificate"], names[1], own["key"])
        assert shown.returncode == 0 and "local" in shown.stdout, shown
    assert shell(server, *trust).returncode != 0
    assert shell(server, *trust, "--tls-certificate", other["certificate"], "--tls-key", other["key"]).returncode != 0
    mixed = shell(server, *trust, "--tls-certificate", own["certificate"], "--tls-key", other["key"])
    assert f"{other['key']} is not the key of {own['certificate']}" in mixed.stderr
    assert "--tls-key" in shell(server, *trust, "--tls-certificate", own["certificate"]).stderr
    server.close()


@pytest.mark.parametrize("settings, said", [
    ({"tls_certificate": "node.pem"}, "TLS for clients needs both tls_certificate and tls_key"),
    ({"tls_optional": "true"}, "TLS for clients needs both tls_certificate and tls_key"),
    ({"tls_certificate": "nosuch.pem", "tls_key": "node.key"}, "nosuch.pem"),
    ({"tls_certificate": "node.key", "tls_key": "node.key"}, "node.key"),
    ({"tls_certificate": "node.pem", "tls_key": "node.pem"}, "cannot read a key from"),
    ({"tls_certificate": "ca.pem", "tls_key": "node.key"}, "don't go together"),
    ({"tls_certificate": "node.pem", "tls_key": "node.key", "tls_optional": "perhaps"}, "allowed is true or false"),
])
def test_wrong_files_are_refused_in_words(tmp_path, authority, files, settings, said):
    paths = {name: value if name == "tls_optional" else authority.folder / value for name, value in settings.items()}
    server = helenus.Node(tmp_path, args=helenus.setting_args(paths))
    with pytest.raises(RuntimeError) as refused:
        server.start()
    assert said in str(refused.value)
