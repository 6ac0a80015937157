"""The servers whose answers are compared, and how each is shaken: a Cassandra, nodes on a folder, three nodes on a bucket."""

import contextlib
import logging
import shutil
import subprocess
import time

import helenus
import minio
from player import PASSING
from shapes import KEPT, PURGED, schema
from three_nodes import Cluster
from toolchains import CACHE, HERE, require

CASSANDRA_START_TIMEOUT_S = 600  # the first start brings Cassandra
KEYSPACE = "differential"
# Cassandra warns of every view.
logging.getLogger("cassandra.protocol").setLevel(logging.ERROR)
# Tombstones of the tables of each life: kept for longer than a play takes, or gone with the first compaction.
LIVES = {KEPT: "", PURGED: "gc_grace_seconds = 1"}
# Number of rows that are written to flush memtables. They are in their own table, and in all tablets.
FILLER_KEYS = 96
FLUSH_TIMEOUT_S = COMPACT_TIMEOUT_S = 90
# So old a tombstone may be purged everywhere, where purging is not put off for late writes.
PURGE_GRACE_S = 12
# A tablet's files are joined when none has been added for 30 s.
REST_S = 30
# Rows of partitions of all tablets that are deleted, so that reads have them compacted.
DEAD_PARTITIONS, DEAD_ROWS = 48, 150
# Longer than the lease of a node that was killed.
LEASE_OVER_S = 4
MERGE_AFTER_S = 3
SETTLE_TIMEOUT_S = DRAIN_TIMEOUT_S = 120
TINY = ["memtable_bytes=4MiB", "block_cache_bytes=1MiB", "compaction_poll_interval=300ms"]
# A machine that runs all servers at once is slow at times.
PATIENT = ["write_timeout=20s", "read_timeout=20s", "request_timeout=40s"]


def settings(*words):
    return [argument for word in words for argument in ("--set", word)]


def execute(session, statement):
    """Executes a statement that may be repeated. A bucket may be too busy for it for a while."""
    return helenus.patient(lambda: session.execute(statement), statement[:60], FLUSH_TIMEOUT_S, PASSING)


class Server:
    """Common parts of all servers. A shake is the method with its name; a server without this method is not shaken."""

    def __init__(self, name):
        self.name, self.session = name, None

    def contact_points(self):
        """Returns the addresses and their port."""
        raise NotImplementedError

    def connect(self):
        """Returns a new session, which replaces the one before."""
        from cassandra.cluster import Cluster
        from cassandra.policies import ConstantReconnectionPolicy, RoundRobinPolicy

        self.disconnect()
        hosts, port = self.contact_points()
        cluster = Cluster(hosts, port=port, protocol_version=5, connect_timeout=20, control_connection_timeout=20,
                          load_balancing_policy=RoundRobinPolicy(), reconnection_policy=ConstantReconnectionPolicy(0.2, None),
                          schema_metadata_enabled=False)
        self.session = cluster.connect()
        self.session.default_timeout = 60
        return self.session

    def disconnect(self):
        if self.session is not None:
            self.session.cluster.shutdown()
            self.session = None

    def make_tables(self):
        session = self.connect()
        for keyspace in (KEYSPACE, "filler"):
            session.execute(f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
        session.execute("CREATE TABLE filler.t (k int PRIMARY KEY, v blob)")
        session.execute("CREATE TABLE filler.dead (p int, c int, PRIMARY KEY (p, c))")
        session.execute(f"USE {KEYSPACE}")
        for statement in schema(LIVES):
            session.execute(statement)

    def open(self):
        """Returns a session in the keyspace of the histories."""
        session = self.connect()
        session.execute(f"USE {KEYSPACE}")
        return session

    def shake(self, name, chance):
        """Does that to the server, `chance` being for its choices."""
        getattr(self, name, lambda chance: None)(chance)


class Cassandra(Server):
    """One node of Cassandra. It is not shaken: its answers are right in any case."""

    def __init__(self, folder):
        require("Apache Cassandra", "java", "mvn")
        super().__init__("cassandra")
        self.folder, self.target = folder, helenus.Target("127.0.0.58", helenus.free_port())
        folder.mkdir(parents=True, exist_ok=True)
        log = open(folder / "start.log", "wb")
        self.process = subprocess.Popen(
            [HERE.parent / "bench/cassandra/start.sh", CACHE / "cassandra", folder / "data", self.target.host, str(self.target.port), "1G"],
            stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        log.close()

    def contact_points(self):
        return [self.target.host], self.target.port

    def wait_ready(self):
        def ready():
            assert self.process.poll() is None, (self.folder / "start.log").read_text()[-3000:]
            return helenus.answers_options(self.target.host, self.target.port)

        helenus.wait_until(ready, CASSANDRA_START_TIMEOUT_S, "Cassandra ready", interval_s=0.5)

    def close(self):
        self.disconnect()
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Helenus(Server):
    """Common parts of both kinds of Helenus. `filler_bytes` is so large that the rows of the filler flush every tablet."""

    filler_bytes = 0

    def alive(self):
        """Returns the running nodes."""
        raise NotImplementedError

    def figure(self, name):
        return sum(node.metrics()[name] for node in self.alive())

    def flush(self, chance):
        """Fills memory with other rows until it is written to data files."""
        session = self.connect()
        before, tablets = self.figure("helenus_store_flushes_total"), self.figure("helenus_store_tablets")
        insert = session.prepare("INSERT INTO filler.t (k, v) VALUES (?, ?)")
        is_done = lambda: self.figure("helenus_store_flushes_total") >= before + tablets
        deadline = time.monotonic() + FLUSH_TIMEOUT_S
        while not is_done():
            assert time.monotonic() < deadline, f"{self.name}: memory was not flushed"
            written = [session.execute_async(insert, (k, chance.randbytes(self.filler_bytes))) for k in range(FILLER_KEYS)]
            for future in written:
                # A bucket that is too busy for them gets them again.
                with contextlib.suppress(*PASSING):
                    future.result()
            with contextlib.suppress(TimeoutError):
                helenus.wait_until(is_done, 1.5, "flushed")

    def compact(self, chance):
        """Waits until tombstones are old enough to be purged. Then reads that meet many tombstones have all files compacted."""
        time.sleep(PURGE_GRACE_S)
        self.flush(chance)
        session = self.connect()
        for p in range(DEAD_PARTITIONS):
            deletions = "; ".join(f"DELETE FROM filler.dead WHERE p = {p} AND c = {c}" for c in range(DEAD_ROWS))
            execute(session, f"BEGIN UNLOGGED BATCH {deletions}; APPLY BATCH")
        deadline = time.monotonic() + COMPACT_TIMEOUT_S
        while not self.is_compacted():
            assert time.monotonic() < deadline, f"{self.name}: files were not compacted"
            for p in range(DEAD_PARTITIONS):
                execute(session, f"SELECT * FROM filler.dead WHERE p = {p}")
            time.sleep(0.3)

    def rest(self, chance):
        """Leaves the node alone until its files are compacted."""
        self.flush(chance)
        helenus.wait_until(self.is_compacted, REST_S + COMPACT_TIMEOUT_S, f"{self.name}: files compacted", 0.3)

    def is_compacted(self):
        """Returns true if the files of all tablets are compacted."""
        return self.figure("helenus_store_level0_files") == self.figure("helenus_store_compactions_running") == 0


class Folder(Helenus):
    """One node on a local folder with little memory."""

    filler_bytes = 4 << 10

    def __init__(self, name, folder, *more):
        super().__init__(name)
        own = ["log_segment_bytes=64KiB", "log_max_bytes=256KiB"]
        self.node = helenus.Node(folder, args=settings(*TINY, *own, *more)).start()

    def contact_points(self):
        return [self.node.host], self.node.port

    def alive(self):
        return [self.node]

    def kill(self, chance):
        self.disconnect()
        self.node.restart()

    def drain(self, chance):
        self.disconnect()
        self.node.restart(clean=True)

    def split(self, chance):
        """Compacts, because the tablets of a folder cannot be split."""
        self.rest(chance)

    def close(self):
        self.disconnect()
        self.node.close()


class ThreeNodes(Helenus):
    """Three nodes on a bucket of MinIO."""

    filler_bytes = 192 << 10

    def __init__(self, folder):
        super().__init__("three-nodes")
        self.minio = minio.Minio(folder / "minio").start()
        url = f"s3://{self.minio.bucket('differential')}/store"
        try:
            self.cluster = Cluster(self.minio, folder, url, args=settings(*TINY, *PATIENT, "tablet_count=4", f"merge_after={MERGE_AFTER_S}s"),
                                   timeout_s=SETTLE_TIMEOUT_S)
        except BaseException:
            self.minio.close()
            raise

    def contact_points(self):
        return [node.host for node in self.alive()], self.cluster.nodes[0].port

    def alive(self):
        return self.cluster.alive()

    def settle(self):
        self.cluster.wait_settled(SETTLE_TIMEOUT_S)

    def kill(self, chance):
        """Kills a node, whose tablets move to the others if it stays away, and come back with it."""
        self.disconnect()
        node = chance.choice(self.cluster.nodes)
        node.kill()
        if chance.random() < 0.5:
            time.sleep(LEASE_OVER_S)
        node.start()
        self.settle()

    def drain(self, chance):
        """Has a node hand over its tablets, then come back."""
        self.disconnect()
        node = chance.choice(self.cluster.nodes)
        if chance.random() < 0.5:
            assert node.terminate(DRAIN_TIMEOUT_S) == 0, node.log(60)
        else:
            subprocess.run([str(helenus.binary()), "nodetool", "--http", f"{node.host}:{node.http_port}", "drain"],
                           check=True, timeout=DRAIN_TIMEOUT_S, stdout=subprocess.DEVNULL)
            node.process.wait(DRAIN_TIMEOUT_S)
        node.start()
        self.settle()

    def split(self, chance):
        """Takes two nodes away until tablets have been merged; when they are back, tablets are split."""
        self.disconnect()
        full = self.figure("helenus_store_tablets")
        away = chance.sample(self.cluster.nodes, 2)
        for node in away:
            assert node.terminate(DRAIN_TIMEOUT_S) == 0, node.log(60)
        helenus.wait_until(lambda: self.figure("helenus_store_tablets") < full, COMPACT_TIMEOUT_S, "tablets are merged", 0.3)
        for node in away:
            node.start()
        helenus.wait_until(lambda: self.figure("helenus_store_tablets") >= full, COMPACT_TIMEOUT_S, "tablets are split", 0.3)
        self.settle()

    def close(self):
        self.disconnect()
        self.cluster.close()
        self.minio.close()
