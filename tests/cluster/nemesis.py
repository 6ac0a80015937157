"""Faults of nodes and of the store, for use while clients are at work. Each fault is a function that causes the fault and undoes it."""

import contextlib
import json
import subprocess
import time

import helenus

# Longer than a lease (2 s), its margin and what a take-over needs, so that it is seen to be over while the fault still holds.
LONG_S = 6.0
# With three nodes; a node that finds fewer has them split, and with one node there may be fewer again.
TABLETS_FULL = 12
FAULTS = {}


def fault(name):
    """Registers a fault under its name in reports."""

    def register(function):
        FAULTS[name] = function
        return function

    return register


def hold(fleet, seconds):
    """Waits, and records the numbers of tablets meanwhile."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        fleet.note_tablets()
        time.sleep(min(0.5, max(0.0, end - time.monotonic())))


@contextlib.contextmanager
def modes(fleet, names, mode):
    for name in names:
        fleet.proxies.set(name, mode)
    try:
        yield
    finally:
        for name in names:
            fleet.proxies.set(name, "pass")


@fault("drain (nodetool), start again")
def drain(fleet, chance):
    node = chance.choice(fleet.nodes)
    subprocess.run([str(helenus.binary()), "nodetool", "--http", f"{node.host}:{node.http_port}", "drain"],
                   check=True, timeout=120, stdout=subprocess.DEVNULL)
    node.process.wait(60)
    node.start()
    return node.name


@fault("SIGTERM, start again")
def terminate(fleet, chance):
    node = chance.choice(fleet.nodes)
    assert node.terminate(120) == 0, node.log(60)
    node.start()
    return node.name


@fault("rolling restart")
def roll(fleet, chance):
    for node in fleet.nodes:
        assert node.terminate(120) == 0, node.log(60)
        node.start()
        fleet.settle()
        # Clients are to have found the node again.
        hold(fleet, 1)
    return "all"


@fault("kill -9")
def kill(fleet, chance):
    node = chance.choice(fleet.nodes)
    node.kill()
    hold(fleet, LONG_S)
    node.start()
    return node.name


@fault("kill -9, start at once")
def crash(fleet, chance):
    node = chance.choice(fleet.nodes)
    node.kill()
    node.start()
    return node.name


@fault("kill -9 of two of three")
def kill_two(fleet, chance):
    victims = chance.sample(fleet.nodes, 2)
    for node in victims:
        node.kill()
    hold(fleet, LONG_S)
    for node in victims:
        node.start(wait=False)
    for node in victims:
        node.wait_ready()
    return ", ".join(node.name for node in victims)


def stop_for(fleet, nodes, seconds):
    for node in nodes:
        node.pause()
    time.sleep(seconds)
    for node in nodes:
        node.resume()


@fault("SIGSTOP past the lease, SIGCONT")
def pause(fleet, chance):
    node = chance.choice(fleet.nodes)
    stop_for(fleet, [node], chance.uniform(4, LONG_S))
    return node.name


@fault("SIGSTOP about as long as the lease, SIGCONT")
def blink(fleet, chance):
    node = chance.choice(fleet.nodes)
    stop_for(fleet, [node], chance.uniform(1.5, 2.6))
    return node.name


@fault("SIGSTOP of all nodes past the lease, SIGCONT")
def pause_all(fleet, chance):
    stop_for(fleet, fleet.nodes, 3)
    return "all"


def cut(fleet, chance, what, mode, seconds):
    """Disturbs one node's connections to the store, or the other nodes' connections to it."""
    node = chance.choice(fleet.nodes)
    with modes(fleet, [f"{what}{node.number}"], mode):
        hold(fleet, seconds)
    return node.name


def cut_store(fleet, chance, mode):
    return cut(fleet, chance, "store", mode, LONG_S)


@fault("cut from the store, hanging")
def cut_hanging(fleet, chance):
    return cut_store(fleet, chance, "hang")


@fault("cut from the store, requests get through but no answers")
def cut_mute(fleet, chance):
    return cut_store(fleet, chance, "mute")


@fault("cut from the store, refused")
def cut_refused(fleet, chance):
    return cut_store(fleet, chance, "refuse")


def cut_peers(fleet, chance, mode):
    return cut(fleet, chance, "peer", mode, 4)


@fault("not reached by its peers, hanging")
def peers_hanging(fleet, chance):
    return cut_peers(fleet, chance, "hang")


@fault("not reached by its peers, refused")
def peers_refused(fleet, chance):
    return cut_peers(fleet, chance, "refuse")


def all_stores(fleet, mode, seconds):
    with modes(fleet, [f"store{node.number}" for node in fleet.nodes], mode):
        hold(fleet, seconds)
    return "all"


@fault("the store loses and delays answers")
def flaky(fleet, chance):
    return all_stores(fleet, "flaky", 5)


@fault("the store answers 503")
def throttled(fleet, chance):
    return all_stores(fleet, "busy", 4)


@fault("the store hangs past the lease")
def store_hangs(fleet, chance):
    fleet.minio.pause()
    time.sleep(4)
    fleet.minio.resume()
    return "MinIO"


def await_tablets(fleet, wanted, what):
    """Waits for a number of tablets."""
    right = lambda: any(wanted(len(view["tablets"])) for view in fleet.note_tablets())
    helenus.wait_until(right, 90, what, 0.2)


SPLITS = "splits, 4 to 12 tablets"


def split(fleet, chance):
    """Waits until the initial tablets are split into four for each node."""
    await_tablets(fleet, lambda count: count >= TABLETS_FULL, "tablets are split")
    return "all"


@fault("two nodes away for long: merges, then splits")
def shrink(fleet, chance):
    """Stops two nodes for so long that tablets are merged. One node needs eight tablets at most, and two nodes twelve."""
    split(fleet, chance)
    away = chance.sample(fleet.nodes, 2)
    for node in away:
        assert node.terminate(120) == 0, node.log(60)
    await_tablets(fleet, lambda count: count <= TABLETS_FULL - 2, "tablets are merged")
    for node in away:
        node.start()
    return split(fleet, chance)


class Nemesis:
    """Does faults, chosen by a seed, and writes down what and when. `words` choose those whose names contain one of them."""

    def __init__(self, fleet, chance, path, say, words=()):
        self.fleet, self.chance, self.path, self.say = fleet, chance, path, say
        self.names = [name for name in FAULTS if not words or any(word in name for word in words)]
        assert self.names, f"no fault has one of {words} in its name; there are: {', '.join(FAULTS)}"

    def strike(self, name):
        """Causes one fault, and returns when the cluster is well again."""
        began = time.time_ns()
        target = {**FAULTS, SPLITS: split}[name](self.fleet, self.chance)
        undone = time.time_ns()
        self.fleet.settle()
        settled = time.time_ns()
        self.say(f"{name}: {target}; undone after {(undone - began) / 1e9:.1f} s, all at rest after {(settled - began) / 1e9:.1f} s")
        with open(self.path, "a") as file:
            line = {"kind": name, "target": target, "from": began, "to": undone, "settled": settled}
            file.write(json.dumps(line) + "\n")

    def rounds(self, seconds, calm_s):
        """Causes all faults in random order, again and again until the time is over. The first round is always completed."""
        end = time.monotonic() + seconds
        hold(self.fleet, calm_s)
        self.strike(SPLITS)
        first = True
        while first or time.monotonic() < end:
            self.chance.shuffle(self.names)
            for name in self.names:
                if not first and time.monotonic() > end:
                    return
                hold(self.fleet, calm_s)
                self.strike(name)
            first = False
        hold(self.fleet, calm_s)
