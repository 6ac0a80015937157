"""The process itself: its store's lock, SIGTERM, wrong settings, HTTP, quick restarts."""

import signal
import subprocess

import pytest

import helenus
import measured

pytestmark = pytest.mark.process


def run_once(*args, env=None, cwd=None, timeout_s=30):
    """Runs the binary to its end; returns (exit code, all output)."""
    done = subprocess.run([str(helenus.binary()), *args], text=True, timeout=timeout_s, cwd=cwd,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**helenus.clean_environment(), **(env or {})})
    return done.returncode, done.stdout


def test_second_node_on_the_same_folder_is_refused(node, tmp_path):
    other = helenus.Node(tmp_path / "other", store=node.store)
    other.start(wait=False)
    assert other.process.wait(30) != 0
    words = other.log()
    assert str(node.store) in words, words
    assert "in use" in words or "another" in words or "locked" in words, words
    assert "panicked" not in words
    assert node.connect().execute("SELECT key FROM system.local").one().key == "local"


def test_sigterm_stops_cleanly(node):
    session = node.connect()
    session.execute("CREATE KEYSPACE s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE s.t (k int PRIMARY KEY)")
    session.execute("INSERT INTO s.t (k) VALUES (1)")
    assert node.terminate() == 0
    node.close_clients()
    node.start()
    assert node.connect().execute("SELECT k FROM s.t").one().k == 1


def test_stop_with_clients_at_work(node):
    """SIGTERM amid requests: each gets an answer or an error, and the exit code is 0."""
    session = node.connect()
    session.execute("CREATE KEYSPACE s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE s.t (k int PRIMARY KEY)")
    insert = session.prepare("INSERT INTO s.t (k) VALUES (?)")
    futures = [session.execute_async(insert, (k,)) for k in range(2000)]
    futures[100].result()
    assert node.terminate() == 0
    acked = set()
    for k, future in enumerate(futures):
        try:
            future.result()
            acked.add(k)
        except Exception:
            pass
    node.close_clients()
    node.start()
    assert acked <= {r.k for r in node.connect().execute("SELECT k FROM s.t")}


def test_ready_again_as_soon_as_the_first_time(tmp_path):
    """After a clean end nothing is left to be replayed. `bench/beside` measures the time itself."""
    nodes = []

    def first_start():
        nodes.append(helenus.Node(tmp_path / f"node{len(nodes)}"))
        return measured.seconds(nodes[-1].start)

    def next_start():
        session = nodes[-1].connect()
        session.execute("CREATE KEYSPACE s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE s.t (k int PRIMARY KEY)")
        for k in range(100):
            session.execute("INSERT INTO s.t (k) VALUES (%s)", (k,))
        nodes[-1].close_clients()
        assert nodes[-1].terminate() == 0
        return measured.seconds(nodes[-1].start)

    try:
        measured.compare(first_start, next_start, 3, "seconds until a node that ended cleanly is ready, beside its first start")
    finally:
        for node in nodes:
            node.close()


def test_http(node):
    assert node.http("/health")[0] == 200
    status, body = node.http("/metrics")
    assert status == 200 and "# TYPE" in body
    assert node.http("/no-such-page")[0] == 404


def test_metrics_do_not_grow_with_tables(node):
    session = node.connect()
    session.execute("CREATE KEYSPACE s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")

    def fill(tables):
        for i in tables:
            session.execute(f"CREATE TABLE s.t{i} (k int PRIMARY KEY)")
            session.execute(f"INSERT INTO s.t{i} (k) VALUES (1)")

    # Only the 20 busiest tables have metrics.
    fill(range(25))
    before = len(node.http("/metrics")[1].splitlines())
    fill(range(25, 75))
    assert len(node.http("/metrics")[1].splitlines()) <= before + 20


@pytest.mark.parametrize("args, words", [
    (["--listen", "nonsense"], ["listen", "nonsense"]),
    (["--listen", "127.0.0.1:99999"], ["listen", "99999"]),
    (["--http", "here"], ["http", "here"]),
    (["--store", "ftp://host/path"], ["store", "ftp", "file://"]),
    (["--config", "no-such-file.toml"], ["no-such-file.toml"]),
    (["--no-such-option"], ["--no-such-option"]),
])
def test_wrong_setting_says_which_why_and_what_is_allowed(tmp_path, args, words):
    folder = [] if "--store" in args else ["--store", f"file://{tmp_path}/store"]
    ports = [] if "--listen" in args else ["--listen", f"127.0.0.1:{helenus.free_port()}"]
    code, out = run_once("serve", *folder, *ports, *args, cwd=tmp_path)
    assert code != 0
    for word in words:
        assert word in out, out
    assert "panicked" not in out


def test_wrong_settings_in_the_file(tmp_path):
    for text, words in [("listten = '127.0.0.1:1'", ["listten"]), ("listen = 5", ["listen"]), ("listen = [", ["line 1"])]:
        config = tmp_path / "helenus.toml"
        config.write_text(text + "\n")
        code, out = run_once("serve", "--store", f"file://{tmp_path}/store", "--config", str(config), cwd=tmp_path)
        assert code != 0, out
        for word in [*words, "helenus.toml"]:
            assert word in out, out


def test_wrong_settings_in_the_environment(tmp_path):
    store = f"file://{tmp_path}/store"
    for name, value, words in [("HELENUS_LISTEN", "nowhere", ["listen", "nowhere"]), ("HELENUS_LISTTEN", "1", ["listten"])]:
        code, out = run_once("serve", "--store", store, env={name: value}, cwd=tmp_path)
        assert code != 0, out
        for word in [*words, name]:
            assert word in out, out


def test_settings_of_file_environment_and_command_line(tmp_path):
    """The command line goes before the environment, and that before the file."""
    config = tmp_path / "helenus.toml"
    config.write_text("cluster_name = 'of the file'\ndata_center = 'of the file'\nrack = 'of the file'\n")
    node = helenus.Node(tmp_path / "node", args=["--config", str(config), "--set", "rack=of the command line"],
                        env={"HELENUS_RACK": "of the environment", "HELENUS_DATA_CENTER": "of the environment"}).start()
    try:
        local = node.connect().execute("SELECT cluster_name, data_center, rack FROM system.local").one()
        assert tuple(local) == ("of the file", "of the environment", "of the command line")
    finally:
        node.close()


def test_port_in_use_says_so(node, tmp_path):
    other = helenus.Node(tmp_path / "other")
    other.port = node.port
    other.start(wait=False)
    assert other.process.wait(30) != 0
    assert str(node.port) in other.log() and "in use" in other.log()


def test_prints_where_it_listens_and_how_to_connect(node):
    words = node.log()
    assert f"{node.host}:{node.port}" in words and str(node.store) in words and "cqlsh" in words


@pytest.mark.parametrize("name", ["SIGHUP", "SIGUSR1", "SIGUSR2"])
def test_signals_that_are_no_request_to_end(node, name):
    session = node.connect()
    node.process.send_signal(getattr(signal, name))
    helenus.wait_until(lambda: not node.alive() or name in node.log(), what=f"{name} is taken note of")
    assert node.alive(), f"{name} ended the node"
    assert session.execute("SELECT key FROM system.local").one().key == "local"
    assert node.terminate() == 0


def others_may_access(folder):
    """Returns the files and folders on which users other than the owner have any permission."""
    return [str(p) for p in [folder, *folder.rglob("*")] if p.stat().st_mode & 0o077]


def test_the_store_is_its_owners_alone(node):
    session = node.connect()
    session.execute("CREATE KEYSPACE s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE s.t (k int PRIMARY KEY)")
    session.execute("INSERT INTO s.t (k) VALUES (1)")
    node.close_clients()
    assert node.terminate() == 0
    assert list(node.store.rglob("*.sst")), "nothing was flushed"
    assert others_may_access(node.store) == []
    # Permissions that an older version has set are corrected.
    for path in [node.store, *node.store.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    node.start()
    assert others_may_access(node.store) == []
    assert node.connect().execute("SELECT k FROM s.t").one().k == 1


def test_the_copy_of_a_folder_is_another_store(node, tmp_path):
    session = node.connect()
    session.execute("CREATE KEYSPACE s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE s.t (k int PRIMARY KEY)")
    session.execute("INSERT INTO s.t (k) VALUES (1)")
    host_id = lambda server: server.connect().execute("SELECT host_id FROM system.local").one().host_id
    former = host_id(node)
    node.restart(clean=True)
    assert host_id(node) == former
    assert node.terminate() == 0
    subprocess.run(["cp", "-a", node.store, tmp_path / "copy"], check=True)
    copied = helenus.Node(tmp_path / "other", store=tmp_path / "copy").start()
    try:
        assert host_id(copied) != former and "this folder is a copy" in copied.log()
        assert copied.connect().execute("SELECT k FROM s.t").one().k == 1
    finally:
        copied.close()
    node.close_clients()
    node.start()
    assert host_id(node) == former


def test_a_slip_in_a_url_makes_no_folder(tmp_path):
    for url in ("s3:/bucket", "s3:bucket/prefix", "file:/data"):
        code, words = run_once("serve", "--store", url, cwd=tmp_path)
        assert code != 0 and url in words and "s3://bucket/prefix" in words, words
    assert not list(tmp_path.iterdir())
