"""The log of a store is moved from objects to a topic, to another topic, and back: nothing that was acknowledged is lost."""

import subprocess

import pytest

import helenus
from test_kafka_log import insert_rows, make_table, rows

pytestmark = pytest.mark.process


class Moved:
    """A store whose log moves."""

    def __init__(self, minio, folder, name):
        self.minio, self.folder, self.store = minio, folder, f"s3://{minio.bucket(name)}/store"
        self.count, self.log_store, self.rows = 0, None, 0

    def node(self):
        """Returns a node that is configured with the log's present place."""
        self.count += 1
        args = ["--set", "lease=2s", "--name", f"node{self.count}"]
        args += ["--log-store", self.log_store] if self.log_store else []
        return helenus.Node(self.folder / f"node{self.count}", store=self.store, env=self.minio.environment(), args=args)

    def write_and_die(self):
        """Reads what was written, writes more, and leaves that in the log alone."""
        node = self.node().start()
        try:
            make_table(node)
            assert rows(node) == list(range(self.rows))
            insert_rows(node, self.rows, 30)
            self.rows += 30
        finally:
            node.kill()
            node.close()

    def move(self, to, **options):
        command = [str(helenus.binary()), "migrate-log", "--store", self.store, "--to", to]
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100,
                              env={**helenus.clean_environment(), **self.minio.environment()}, **options)
        if done.returncode == 0:
            self.log_store = None if to == "store" else to
        return done


def test_a_log_moves_from_place_to_place(minio, brokers, tmp_path):
    moved = Moved(minio, tmp_path, "moved")
    one, two = (f"kafka://{brokers.addresses}/moved-{name}" for name in ("one", "two"))
    apart = f"s3://{minio.bucket('moved-log')}/log"
    moved.write_and_die()
    for to in (one, two, one, apart, one, "store"):
        done = moved.move(to)
        assert done.returncode == 0 and "helenus serve" in done.stdout, done.stdout
        moved.write_and_die()
    assert moved.rows == 210
    done = moved.move("store")
    assert done.returncode != 0 and "lies there already" in done.stdout, done.stdout
    node = moved.node().start()
    assert rows(node) == list(range(moved.rows))
    # Not while a node is running, which goes on.
    done = moved.move(two)
    assert done.returncode != 0 and "is running on it" in done.stdout, done.stdout
    insert_rows(node, moved.rows, 5)
    node.close()
    again = moved.node().start()
    assert rows(again) == list(range(moved.rows + 5))
    again.close()


def test_a_move_that_was_interrupted_is_repeated(minio, brokers, tmp_path):
    moved = Moved(minio, tmp_path, "interrupted")
    topic = f"kafka://{brokers.addresses}/interrupted"
    moved.write_and_die()
    for seconds in (2.2, 2.4, 2.6, 2.9):
        command = ["timeout", "-s", "KILL", str(seconds), str(helenus.binary()), "migrate-log", "--store", moved.store, "--to", topic]
        subprocess.run(command, env={**helenus.clean_environment(), **minio.environment()}, stdout=subprocess.DEVNULL)
    # Refused whether the move has come to its end or not.
    node = moved.node()
    node.start(wait=False)
    assert node.process.wait(60) != 0
    assert "helenus migrate-log" in node.log() or f"start with --log-store {topic}" in node.log(), node.log()
    done = moved.move(topic)
    assert done.returncode == 0 or "lies there already" in done.stdout, done.stdout
    moved.log_store = topic
    moved.write_and_die()
    moved.write_and_die()
