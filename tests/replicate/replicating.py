"""Runs `helenus replicate`, and waits until all changes are sent."""

import subprocess
import time
import urllib.request

from cassandra import InvalidRequest
from cassandra.cluster import NoHostAvailable

import helenus

TIMEOUT_S = 120
KEYSPACE = "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
# A short settle time suffices on one machine with one clock, where writes take milliseconds.
QUICK = ("--settle", "1s", "--lease", "3s")
# A node that is paused writes changes with times from before the pause.
SLOW = ("--settle", "8s", "--lease", "3s")


class Replicator:
    """A process that replicates from one server to another."""

    def __init__(self, source, target, folder, *options, times=QUICK):
        self.source, self.target, self.log_path = source, target, folder / f"replicate-{helenus.free_port()}.log"
        self.name = f"{target.host}:{target.port}"
        self.metrics_address = f"127.0.0.1:{helenus.free_port()}"
        self.command = [str(helenus.binary()), "replicate", "--from", f"{source.host}:{source.port}", "--to", self.name,
                        "--metrics", self.metrics_address, *times, *options]
        self.process = None

    def start(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        return self

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        """Sends SIGTERM. Returns the exit code."""
        self.process.terminate()
        return self.process.wait(30)

    def wait_end(self, timeout_s=TIMEOUT_S):
        """Returns the exit code of a process that ends by itself."""
        return self.process.wait(timeout_s)

    def log(self):
        return self.log_path.read_text()

    def metrics(self):
        """Returns the figures of the process, by name and labels as written there."""
        with urllib.request.urlopen(f"http://{self.metrics_address}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        lines = [line.rsplit(" ", 1) for line in text.splitlines() if line and line[0] != "#"]
        return {name: float(value) for name, value in lines}

    def is_caught_up(self, session, since_us, tables):
        """Returns true if the tables are copied, and changes up to a time were sent."""
        found = {row.table_name: row for row in session.execute("SELECT * FROM helenus_replication.tables WHERE name = %s", [self.name])}
        streams = list(session.execute("SELECT time, streams FROM system_distributed.cdc_streams_descriptions_v2"))
        newest = max((row.time for row in streams), default=None)
        current = {stream for row in streams if row.time == newest for stream in row.streams}
        for table in tables:
            if table not in found or len(found[table].copied or ()) < found[table].ranges:
                return False
            sent = {row.stream: row.sent_until_us for row in session.execute(
                "SELECT stream, sent_until_us FROM helenus_replication.streams WHERE name = %s AND table_name = %s", [self.name, table])}
            if not current or any(sent.get(stream, 0) < since_us for stream in current):
                return False
        return True

    def wait_caught_up(self, session, *tables, may_end=False):
        """Waits until all changes from before this call are sent."""
        since_us = int(time.time() * 1e6)

        def caught_up():
            assert may_end or self.process.poll() is None, self.log()
            try:
                return self.is_caught_up(session, since_us, tables)
            except (InvalidRequest, NoHostAvailable):
                # The process has not created its tables yet, or the node was just started.
                return False

        try:
            helenus.wait_until(caught_up, TIMEOUT_S, f"changes sent to {self.name}", 0.2)
        except TimeoutError:
            raise AssertionError(self.log())
