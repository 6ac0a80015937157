"""ScyllaDB's readers of captured changes, unmodified: every change arrives once, and the changes of a partition in order."""

import json
import pathlib
import subprocess
import threading

import pytest

import helenus
import toolchains

pytestmark = pytest.mark.process

KEYSPACE = "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
HERE = pathlib.Path(__file__).resolve().parent
PARTITIONS, ROUNDS = 20, 25


def go(node):
    return [*toolchains.go_program("CDC reader for Go", HERE, "reader"), node.host, str(node.port), "k.t"]


def rust(node):
    return [*toolchains.Toolchains().rust(), "cdc", node.host, str(node.port), "k", "t"]


def java(node):
    return [*toolchains.Toolchains().cdc_reader_in_java(), node.host, str(node.port), "k", "t"]


class Reader:
    """A process that prints changes."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.changes, self.words = [], []
        self.arrived = threading.Condition()
        for stream, take in [(self.process.stdout, self.take), (self.process.stderr, self.words.append)]:
            threading.Thread(target=self.follow, args=(stream, take), daemon=True).start()

    def follow(self, stream, take):
        for line in stream:
            take(line)

    def take(self, line):
        with self.arrived:
            self.changes.append(json.loads(line))
            self.arrived.notify_all()

    def wait_for(self, count, timeout_s=120):
        with self.arrived:
            if not self.arrived.wait_for(lambda: len(self.changes) >= count, timeout_s):
                pytest.fail(f"{len(self.changes)} of {count} changes arrived; the reader's last words: {''.join(self.words[-20:])}")
            return list(self.changes)

    def close(self):
        self.process.kill()
        self.process.wait()


@pytest.mark.parametrize("command", [go, java, rust], ids=["go", "java", "rust"])
def test_every_change_arrives_once_and_in_order(tmp_path, command):
    node = helenus.Node(tmp_path / "node").start()
    session = node.connect()
    session.execute(KEYSPACE)
    session.execute("CREATE TABLE k.t (pk int PRIMARY KEY, v int) WITH cdc = {'enabled': true, 'preimage': true}")
    insert = session.prepare("INSERT INTO k.t (pk, v) VALUES (?, ?)")
    reader = Reader(command(node))
    try:
        for pk in range(PARTITIONS):
            session.execute(insert, (pk, 0))
        reader.wait_for(PARTITIONS)
        for v in range(1, ROUNDS):
            for pk in range(PARTITIONS):
                session.execute(insert, (pk, v))
            if v == ROUNDS // 2:
                node.kill()
                session = node.start().connect()
                insert = session.prepare("INSERT INTO k.t (pk, v) VALUES (?, ?)")
        expected = PARTITIONS * ROUNDS
        deltas = [change for change in reader.wait_for(expected) if change["operation"] == 2]
        while len(deltas) < expected:
            deltas = [change for change in reader.wait_for(len(reader.changes) + 1) if change["operation"] == 2]
        for pk in range(PARTITIONS):
            assert [change["v"] for change in deltas if change["pk"] == pk] == list(range(ROUNDS)), pk
    finally:
        reader.close()
        node.close()
