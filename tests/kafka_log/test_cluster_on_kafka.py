"""Three nodes whose log is a topic, under load and faults: what their clients saw is linearizable and complete."""

import random
import subprocess
import threading
import time

import pytest

import copies  # noqa: F401: it registers faults
import helenus
import toolchains
from fleet import Fleet
from load import Load
from nemesis import Nemesis

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]

SECONDS = 40
RATE = 100
# The faults of the cluster that concern the log.
FAULTS = ["kill -9", "SIGSTOP", "peers, hanging"]


def strike_brokers_in_turn(brokers, chance, stopping):
    """Does something to one broker after the other, and makes it good again."""
    while not stopping.wait(3):
        for broker in brokers.all:
            how = chance.choice(["kill -9", "SIGSTOP", "network"])
            print(f"broker {broker.number}: {how}", flush=True)
            if how == "kill -9":
                broker.kill()
                time.sleep(3)
                broker.start()
            elif how == "SIGSTOP":
                broker.pause()
                time.sleep(9)
                broker.resume()
            else:
                brokers.cut(broker)
                time.sleep(9)
                brokers.links.mend()
            if stopping.wait(12):
                return


def restart_everything(brokers, fleet):
    """Kills all nodes and brokers at once, and starts them again."""
    for process in [*fleet.nodes, *brokers.all]:
        process.kill()
    for broker in brokers.all:
        broker.start()
    helenus.wait_until(brokers.ready, 90, "the brokers are back", 1)
    for node in fleet.nodes:
        node.start(wait=False)
    for node in fleet.nodes:
        node.wait_ready()
    fleet.settle()


def test_what_clients_saw(minio, brokers, tmp_path, request):
    checker = toolchains.Toolchains().checker()
    seed = request.config.getoption("--seed") or random.randrange(1 << 32)
    history, faults = tmp_path / "history.jsonl", tmp_path / "faults.jsonl"
    topic = brokers.topic("cluster", partitions=48)
    store = f"s3://{minio.bucket('cluster')}/store"
    fleet = load = None
    stopping = threading.Event()
    striker = threading.Thread(target=strike_brokers_in_turn, args=(brokers, random.Random(seed), stopping))
    try:
        fleet = Fleet(checker, minio, store, tmp_path, [f"log_store={topic}"]).start()
        with open(tmp_path / "load.log", "w") as log:
            load = Load(checker, fleet, history, RATE, seed, log)
            nemesis = Nemesis(fleet, random.Random(seed), faults, print, FAULTS)
            striker.start()
            until = time.monotonic() + SECONDS
            while time.monotonic() < until:
                nemesis.strike(nemesis.chance.choice(nemesis.names))
                time.sleep(1)
            stopping.set()
            striker.join()
            print("everything is restarted", flush=True)
            restart_everything(brokers, fleet)
            load.finish(240)
    finally:
        stopping.set()
        brokers.links.mend()
        for thing in (load, fleet):
            if thing is not None:
                thing.close()
    done = subprocess.run([*checker, "check", "--history", str(history), "--faults", str(faults)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, f"seed {seed}\n{done.stdout[-6000:]}"
