"""A real `helenus serve` process for tests: start, wait until ready, kill, restart, stop.

Also `Target`, the same face for a server that runs already (Apache Cassandra, say), so that
every test can be shown to hold on the server it imitates.
"""

import collections
import os
import pathlib
import random
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
READY_TIMEOUT_S = 60
OPTIONS_FRAME = bytes([4, 0, 0, 0, 5, 0, 0, 0, 0])


def binary():
    """Returns the path of the helenus binary under test."""
    if os.environ.get("HELENUS_BIN"):
        return pathlib.Path(os.environ["HELENUS_BIN"])
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release" / "helenus"


def clean_environment():
    """Returns the environment without variables of tests, because the server takes HELENUS_* for settings."""
    return {k: v for k, v in os.environ.items() if not k.startswith("HELENUS_")}


# Settings of nodes on a folder. Requests of a busy machine take longer than in production.
PATIENT = {f"HELENUS_{name}_REQUEST_TIMEOUT": "60s" for name in ("READ", "RANGE", "WRITE", "COUNTER_WRITE")}

# Ports that no outgoing connection is given: those are from 32768 on, and one of them could take a port before its node listens there. Of workers of pytest,
# each takes its own.
WORKERS_MAX = 4
PORTS = range(10_000, 32_000)[int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % WORKERS_MAX::WORKERS_MAX]
# The last ports that `free_port` has given: what they were given for may not listen yet.
given_ports = collections.deque(maxlen=1000)


def free_port(host="127.0.0.1"):
    """Returns a TCP port on which no process listens, and that was not returned recently."""
    while True:
        port = random.choice(PORTS)
        if port in given_ports:
            continue
        with socket.socket() as s:
            try:
                s.bind((host, port))
            except OSError:
                continue
        given_ports.append(port)
        return port


def free_port_on(*hosts):
    """Returns a TCP port on which no process listens at any of these addresses."""
    while True:
        port = free_port(hosts[0])
        try:
            for host in hosts[1:]:
                with socket.socket() as s:
                    s.bind((host, port))
            return port
        except OSError:
            continue


def setting_args(settings):
    """Returns the arguments of `helenus serve` for settings by name."""
    return [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]


def wait_until(condition, timeout_s=30, what="condition", interval_s=0.02):
    """Polls `condition` until it returns something true, and returns that."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout_s} s")
        time.sleep(interval_s)


def patient(act, what, timeout_s=180, passing=Exception):
    """Returns the result of an action, which is repeated until it succeeds. Errors of the type `passing` may pass, as while nodes stop and start."""
    found = []

    def tried():
        try:
            found.append(act())
        except passing as error:
            tried.error = error
            return False
        return True

    try:
        wait_until(tried, timeout_s, what, 0.3)
    except TimeoutError:
        raise AssertionError(f"{what}: {tried.error!r}")
    return found[0]


def answers_options(host, port, timeout_s=5):
    """Returns true if a CQL server answers OPTIONS with SUPPORTED, or requires TLS."""
    try:
        with socket.create_connection((host, port), timeout=timeout_s) as s:
            s.settimeout(timeout_s)
            s.sendall(OPTIONS_FRAME)
            answer = s.recv(4096)
            return len(answer) >= 5 and (answer[4] == 6 or b"use TLS" in answer)
    except OSError:
        return False


class Target:
    """A CQL server at a known address that the tests did not start."""

    owned = False

    def __init__(self, host, port):
        self.host, self.port = host, port
        self._clusters = []

    def connect(self, keyspace=None, **options):
        """Returns a driver session, which is closed with the server object. `options` go to `Cluster`."""
        from cassandra.cluster import Cluster
        from cassandra.policies import ConstantReconnectionPolicy, RoundRobinPolicy

        options.setdefault("load_balancing_policy", RoundRobinPolicy())
        options.setdefault("reconnection_policy", ConstantReconnectionPolicy(0.2, None))
        options.setdefault("connect_timeout", 20)
        options.setdefault("control_connection_timeout", 20)
        options.setdefault("protocol_version", 5)
        cluster = Cluster([self.host], port=self.port, **options)
        self._clusters.append(cluster)
        session = cluster.connect(keyspace)
        session.default_timeout = 60
        return session

    def close_clients(self):
        """Closes every session that `connect` made."""
        for cluster in self._clusters:
            cluster.shutdown()
        self._clusters = []

    def close(self):
        self.close_clients()


class Node(Target):
    """One helenus process on free ports over a local folder, or the object store that a URL names."""

    owned = True

    def __init__(self, folder=None, store=None, args=(), env=None, host="127.0.0.1", port=None, niceness=0):
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="helenus-test-"))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.url = store if "://" in str(store) else None
        self.store = None if self.url else pathlib.Path(store or self.folder / "store")
        super().__init__(host, port or free_port(host))
        self.http_port, self.rpc_port = free_port(host), free_port(host)
        self.args, self.env, self.niceness = list(args), dict(env or {}), niceness
        self.process = None
        self.log_path = self.folder / "helenus.log"

    def command(self):
        """Returns the command line of the process."""
        return [
            str(binary()), "serve",
            "--store", self.url or f"file://{self.store}",
            "--listen", f"{self.host}:{self.port}",
            "--http", f"{self.host}:{self.http_port}",
            "--rpc", f"{self.host}:{self.rpc_port}",
            *self.args,
        ]

    def start(self, wait=True):
        """Starts the process; with `wait`, returns when it serves CQL."""
        log = open(self.log_path, "ab")
        self.process = subprocess.Popen(
            ["nice", "-n", str(self.niceness), *self.command()], stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            cwd=self.folder, env={**clean_environment(), **({} if self.url else PATIENT), **self.env},
        )
        log.close()
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self, timeout_s=READY_TIMEOUT_S):
        """Returns when CQL and /health answer; fails with the log if the process ends first."""

        def ready():
            if self.process.poll() is not None:
                raise RuntimeError(f"helenus ended with {self.process.returncode}:\n{self.log()}")
            return answers_options(self.host, self.port) and self.health() == 200

        wait_until(ready, timeout_s, "helenus ready")

    def http(self, path):
        """Returns status and body of a GET on the HTTP port."""
        try:
            with urllib.request.urlopen(f"http://{self.host}:{self.http_port}{path}", timeout=5) as r:
                return r.status, r.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()

    def health(self):
        """Returns the status code of /health, or None if the port is closed."""
        try:
            return self.http("/health")[0]
        except OSError:
            return None

    def metrics(self):
        """Returns the figures of /metrics, by name and labels as written there."""
        lines = [line.rsplit(" ", 1) for line in self.http("/metrics")[1].splitlines() if line and line[0] != "#"]
        return {name: float(value) for name, value in lines}

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """Kills the process with SIGKILL, and waits for its end."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def pause(self):
        """Stops every thread; a signal alone returns before the threads have taken it."""
        self.process.send_signal(signal.SIGSTOP)
        threads = pathlib.Path(f"/proc/{self.process.pid}/task")

        def stopped():
            try:
                states = [(thread / "stat").read_text().rpartition(")")[2].split()[0] for thread in threads.iterdir()]
            except OSError:
                # A thread ended while it was looked at, or the process has.
                return not self.alive()
            return all(state == "T" for state in states)

        wait_until(stopped, what="stopped threads")

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def terminate(self, timeout_s=30):
        """Sends SIGTERM. Returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout_s)

    def restart(self, clean=False):
        """Stops (kill -9 unless `clean`) and starts again on the same folder and ports."""
        self.terminate() if clean else self.kill()
        return self.start()

    def log(self, last=200):
        """Returns the last lines of the process's output."""
        if not self.log_path.exists():
            return ""
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-last:])

    def close(self):
        self.close_clients()
        self.kill()


# Settings of a node where clients log in, and roles have permissions.
SECURED = ["--set", "authenticator=PasswordAuthenticator", "--set", "authorizer=CassandraAuthorizer"]


def log_in(server, name, password, **options):
    """Returns a session of a role."""
    from cassandra.auth import PlainTextAuthProvider
    from cassandra.cluster import Cluster

    cluster = Cluster([server.host], port=server.port, auth_provider=PlainTextAuthProvider(name, password), **options)
    try:
        return cluster.connect()
    except Exception:
        cluster.shutdown()
        raise
