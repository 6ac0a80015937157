"""Runs the helenus-stress binary and reads what it leaves behind; a TCP proxy that can stall."""

import csv
import dataclasses
import json
import os
import pathlib
import socket
import subprocess
import threading

import helenus

WELL, ERRORS, RATE_MISSED, UNVERIFIED = 0, 3, 4, 5


def binary():
    """Returns the path of the helenus-stress binary under test."""
    if os.environ.get("HELENUS_STRESS_BIN"):
        return pathlib.Path(os.environ["HELENUS_STRESS_BIN"])
    return helenus.binary().parent / "helenus-stress"


@dataclasses.dataclass
class Ended:
    """A finished command."""

    status: int
    out: str
    err: str
    folder: pathlib.Path

    @property
    def result(self):
        """Returns the content of run.json."""
        return json.loads((self.folder / "run.json").read_text())

    def operation(self, name):
        """Returns the figures of one operation."""
        return next(o for o in self.result["operations"] if o["name"] == name)

    def intervals(self):
        """Returns the rows of intervals.csv."""
        with open(self.folder / "intervals.csv") as f:
            return list(csv.DictReader(f))


def command(*words):
    """Runs a command that needs no server; its output."""
    done = subprocess.run([binary(), *words], text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def start(server, folder, *words):
    """Starts a load against the server; its result goes to `folder`."""
    words = [str(word) for word in words]
    return subprocess.Popen(
        [str(binary()), *words, "--host", f"{server.host}:{server.port}", "--out", str(folder)],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=helenus.clean_environment(),
    )


def load(server, folder, *words, status=WELL, timeout_s=120):
    """Runs a load to its end and expects its exit status."""
    ended = finish(start(server, folder, *words), folder, timeout_s)
    assert ended.status == status, f"exit {ended.status}\n{ended.out}\n{ended.err}"
    return ended


def finish(process, folder, timeout_s=120):
    """Waits for a started load."""
    try:
        out, err = process.communicate(timeout=timeout_s)
    finally:
        process.kill()
    return Ended(process.returncode, out, err, pathlib.Path(folder))


class Proxy:
    """Passes bytes on to a server; between `stall` and `go_on` it holds back what the server answers."""

    def __init__(self, server):
        self.target = (server.host, server.port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self.listener.getsockname()
        self.passing = threading.Event()
        self.passing.set()
        self.sockets = []
        threading.Thread(target=self._accept, daemon=True).start()

    def stall(self):
        self.passing.clear()

    def go_on(self):
        self.passing.set()

    def close(self):
        self.passing.set()
        for s in [self.listener, *self.sockets]:
            s.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(self.target)
            except OSError:
                return
            self.sockets += [client, server]
            threading.Thread(target=self._pump, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, True), daemon=True).start()

    def _pump(self, source, sink, can_stall):
        try:
            while data := source.recv(1 << 16):
                if can_stall:
                    self.passing.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass
