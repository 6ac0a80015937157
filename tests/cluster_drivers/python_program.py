"""The Python driver's program: see programs.py. usage: python_program.py HOST PORT KEYSPACE"""

import sys
import threading
import time

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import DCAwareRoundRobinPolicy, TokenAwarePolicy
from cassandra import ConsistencyLevel

WORKERS = 8


class Loader:
    """State that the workers share."""

    def __init__(self, host, port, keyspace):
        policy = TokenAwarePolicy(DCAwareRoundRobinPolicy("datacenter1"))
        profile = ExecutionProfile(policy, consistency_level=ConsistencyLevel.QUORUM)
        cluster = Cluster([host], port=port, protocol_version=5, execution_profiles={EXEC_PROFILE_DEFAULT: profile})
        self.session = cluster.connect(keyspace)
        self.metadata = cluster.metadata
        self.insert = self.session.prepare("INSERT INTO t (k, v) VALUES (?, ?)")
        self.select = self.session.prepare("SELECT v FROM t WHERE k = ?")
        self.insert.is_idempotent = self.select.is_idempotent = True
        self.lock, self.stopped = threading.Lock(), threading.Event()
        self.operations, self.failures, self.worst_ms, self.first = 0, 0, 0, ""
        self.workers = []

    def write(self, k):
        self.session.execute(self.insert, (k, k))

    def read(self, k):
        assert self.session.execute(self.select, (k,)).one().v == k

    def timed(self, operation, k):
        began = time.monotonic()
        try:
            operation(k)
            why = None
        except Exception as error:
            why = f"{type(error).__name__}: {error}".replace("\n", " ")
        took_ms = int((time.monotonic() - began) * 1000)
        with self.lock:
            self.operations += 1
            self.worst_ms = max(self.worst_ms, took_ms)
            if why:
                self.failures += 1
                self.first = self.first or why

    def work(self, k):
        while not self.stopped.is_set():
            self.timed(self.write, k)
            self.timed(self.read, k)
            k += WORKERS

    def run(self, name, *numbers):
        if name == "nodes":
            return sum(1 for host in self.metadata.all_hosts() if host.is_up)
        if name == "route":
            first, count = map(int, numbers)
            for operation in (self.write, self.read):
                for k in range(first, first + count):
                    operation(k)
            return "done"
        if name == "load":
            self.workers = [threading.Thread(target=self.work, args=(1_000_000 + n,)) for n in range(WORKERS)]
            for worker in self.workers:
                worker.start()
            return "done"
        self.stopped.set()
        for worker in self.workers:
            worker.join()
        return f"{self.operations} {self.failures} {self.worst_ms} {self.first}"


def main():
    loader = Loader(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    print("ready", flush=True)
    for line in sys.stdin:
        print(loader.run(*line.split()), flush=True)


main()
