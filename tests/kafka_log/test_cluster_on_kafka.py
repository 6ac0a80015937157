"""Three nodes whose log is a topic, under load and faults: what their clients saw is linearizable and complete."""

import random
import subprocess
import threading
import time

import pytest

import copies  # noqa: F401: it registers faults
import toolchains
from fleet import Fleet
from load import Load
from nemesis import Nemesis

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]

SECONDS = 40
RATE = 100
# The faults of the cluster that concern the log.
FAULTS = ["kill -9", "SIGSTOP", "peers, hanging"]


def kill_brokers_in_turn(brokers, stopping):
    """Kills one broker after the other, and starts it again."""
    while not stopping.wait(3):
        for broker in brokers.all:
            broker.kill()
            time.sleep(3)
            broker.start()
            if stopping.wait(12):
                return


def test_what_clients_saw(minio, brokers, tmp_path, request):
    checker = toolchains.Toolchains().checker()
    seed = request.config.getoption("--seed") or random.randrange(1 << 32)
    history, faults = tmp_path / "history.jsonl", tmp_path / "faults.jsonl"
    topic = brokers.topic("cluster", partitions=48)
    store = f"s3://{minio.bucket('cluster')}/store"
    fleet = load = None
    stopping = threading.Event()
    killer = threading.Thread(target=kill_brokers_in_turn, args=(brokers, stopping))
    try:
        fleet = Fleet(checker, minio, store, tmp_path, [f"log_store={topic}"]).start()
        with open(tmp_path / "load.log", "w") as log:
            load = Load(checker, fleet, history, RATE, seed, log)
            nemesis = Nemesis(fleet, random.Random(seed), faults, print, FAULTS)
            killer.start()
            until = time.monotonic() + SECONDS
            while time.monotonic() < until:
                nemesis.strike(nemesis.chance.choice(nemesis.names))
                time.sleep(1)
            stopping.set()
            killer.join()
            load.finish(240)
    finally:
        stopping.set()
        for thing in (load, fleet):
            if thing is not None:
                thing.close()
    done = subprocess.run([*checker, "check", "--history", str(history), "--faults", str(faults)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, f"seed {seed}\n{done.stdout[-6000:]}"
