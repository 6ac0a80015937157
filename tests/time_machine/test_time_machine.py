"""Snapshots, times and branches of three nodes under load, while nodes stop and tablets move, split and merge. Each is compared with the
writes that clients know of, and with itself. Then it is read again, restored, written to, and cleared.
"""

import random
import shutil
import statistics
import threading
import time

import pytest

import helenus
import toolchains
from fleet import Fleet
from minio import Minio
from cuts import Clock, Cut, Time, check, contents
from nemesis import SPLITS, Nemesis, hold
from tool import nodetool
from writers import GROUPS, KEYS, KEYSPACE, Writers

pytestmark = [pytest.mark.process, pytest.mark.timeout(0)]

# Faults that a cluster gets over while snapshots are taken.
FAULTS = ("drain", "SIGTERM", "kill -9", "start at once", "SIGSTOP about")
# Snapshots, and branches, that are there at one time.
KEPT = 12
BRANCHES = 3


@pytest.fixture
def fleet(request, tmp_path):
    minio = Minio(tmp_path / "minio").start()
    # A time is kept among those that are read again for as long as chance has it.
    window = max(10, 2 * request.config.getoption("--minutes"))
    store, settings = f"s3://{minio.bucket('moments')}/store", [f"point_in_time_window={window:.0f}m"]
    fleet = Fleet(toolchains.Toolchains().checker(), minio, store, tmp_path, settings)
    try:
        yield fleet.start()
    finally:
        fleet.close()
        minio.close()
        if kept := request.config.getoption("--keep"):
            # The files of a disk cache are sparse, and a copy of them is not.
            shutil.copytree(tmp_path, kept, dirs_exist_ok=True, ignore=shutil.ignore_patterns("helenus-cache"))


def outcome(cut, shown):
    """Returns what is wrong with a read of a cut, in words."""
    try:
        check(cut, shown)
    except AssertionError as error:
        return str(error)
    return "nothing is wrong"


class Branch:
    """A copy of the keyspace, and what it shows."""

    def __init__(self, name, shown):
        self.name, self.shown = name, shown


class TimeMachine:
    """Takes moments one after the other, until `close`."""

    def __init__(self, fleet, writers, seed, say):
        self.fleet, self.writers, self.say = fleet, writers, say
        self.random = random.Random(seed)
        self.kept, self.times, self.branches = [], [], []
        self.taken = self.refused = self.read = self.restored = self.branched = self.noted = 0
        self.seconds = {"taken": [], "read": [], "time read": [], "put back": [], "branched": []}
        self.trouble = self.last_refusal = None
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    @property
    def looks(self):
        return self.read + self.restored + self.branched

    def work(self):
        told = 0
        try:
            while not self.ends.is_set():
                self.step()
                if self.looks >= told + 100:
                    told = self.looks
                    self.say(f"{told} looks at moments")
        except BaseException as error:
            self.trouble = error
            self.ends.set()

    def ask(self, *words):
        """Runs a command on any node. It may wait for nodes that stop and for moving tablets."""
        return nodetool(self.random.choice(self.fleet.nodes), *words, timeout_s=180)

    def step(self):
        if self.random.random() < 0.3 or not self.kept:
            self.take()
        self.note()
        for cut in self.random.sample(self.kept + self.times, min(3, len(self.kept + self.times))):
            self.look(cut)
        if self.random.random() < 0.15:
            self.restore(self.random.choice(self.kept + self.times))
        if self.random.random() < 0.3:
            self.branch(self.random.choice([*self.kept, *self.times, None]))
        if self.branches and self.random.random() < 0.5:
            self.look_at_branch(self.random.choice(self.branches))
        if len(self.branches) > BRANCHES:
            self.run(f"DROP KEYSPACE IF EXISTS {self.branches.pop(self.random.randrange(len(self.branches))).name}")
        if len(self.kept) > KEPT:
            self.clear(self.kept.pop(self.random.randrange(len(self.kept))))
        if len(self.times) > KEPT:
            self.times.pop(self.random.randrange(len(self.times)))
        self.ends.wait(self.random.uniform(0, 0.3))

    def take(self):
        cut = Cut(f"m{self.taken + self.refused}", self.writers.acknowledged())
        began = time.monotonic()
        said = self.ask("snapshot", "-t", cut.name, KEYSPACE)
        cut.most = self.writers.begun()
        if said.returncode != 0:
            # The node, or another, was not there.
            self.refused += 1
            self.last_refusal = said.stderr
            return
        self.taken += 1
        self.seconds["taken"].append(time.monotonic() - began)
        self.look(cut)
        self.kept.append(cut)

    def note(self):
        """Records the present time with the bounds of its content."""
        least = self.writers.acknowledged()
        # Later than what was acknowledged, and earlier than what is begun afterwards.
        time.sleep(0.002)
        cut = Time(int(time.time() * 1000), least)
        time.sleep(0.002)
        cut.most = self.writers.begun()
        self.times.append(cut)
        self.noted += 1

    def look(self, cut):
        began = time.monotonic()
        read = lambda: helenus.patient(lambda: contents(self.writers.session, cut.as_of), f"{cut} is read")
        try:
            check(cut, read())
        except AssertionError as error:
            # A second read shows whether the store is wrong, or only one read of it.
            raise AssertionError(f"{error}; read again {time.monotonic() - began:.1f} s later: {outcome(cut, read())}") from error
        self.seconds["time read" if isinstance(cut, Time) else "read"].append(time.monotonic() - began)
        self.read += 1

    def restore(self, cut):
        """Restores the table of rows, from which the writers then go on."""
        self.writers.rest()
        try:
            began = time.monotonic()
            if cut.seen is None:
                self.look(cut)
            restored = lambda: self.ask("restore", *cut.option, "-kt", f"{KEYSPACE}.rows").returncode == 0
            helenus.wait_until(restored, 180, f"{cut} is put back", 0.5)
            self.seconds["put back"].append(time.monotonic() - began)
            now = helenus.patient(lambda: contents(self.writers.session, ""), f"what {cut} was put back to")
            for name in ("rows", "view", "index"):
                assert now[name] == cut.seen[name], f"{cut} was put back: {name} is {now[name]}, and was {cut.seen[name]}"
            # Later writes are newer than the restored ones.
            for k, value in self.writers.rows.items():
                value.acknowledged = now["rows"].get(k, (0, 0))[0]
            self.restored += 1
        finally:
            self.writers.go_on()

    def run(self, statement):
        helenus.patient(lambda: self.writers.session.execute(statement, timeout=60), statement, 120)

    def branch(self, cut):
        """Copies the keyspace as it is now or in a cut, and writes to the copy."""
        name, as_of = f"copy{self.branched}", cut.as_of if cut else ""
        cut = cut or Cut(name, self.writers.acknowledged())
        began = time.monotonic()
        self.run(f"CREATE KEYSPACE IF NOT EXISTS {name} AS COPY OF {KEYSPACE} {as_of}")
        self.seconds["branched"].append(time.monotonic() - began)
        self.branched += 1
        cut.most = cut.most or self.writers.begun()
        shown = helenus.patient(lambda: contents(self.writers.session, "", name), f"{name} is read")
        check(cut, shown)
        rows = dict(shown["rows"])
        for k in self.random.sample(range(KEYS), 2):
            self.run(f"UPDATE {name}.rows SET n = -1, g = {k % GROUPS} WHERE k = {k}")
            rows[k] = (-1, k % GROUPS)
        gone = self.random.randrange(KEYS)
        self.run(f"DELETE FROM {name}.rows WHERE k = {gone}")
        rows.pop(gone, None)
        self.branches.append(Branch(name, {**shown, "rows": rows, "view": rows, "index": rows}))
        self.look_at_branch(self.branches[-1])

    def look_at_branch(self, branch):
        shown = helenus.patient(lambda: contents(self.writers.session, "", branch.name), f"{branch.name} is read")
        assert shown == branch.shown, f"{branch.name} shows {shown}, and was {branch.shown}"

    def clear(self, cut):
        helenus.wait_until(lambda: self.ask("clearsnapshot", "-t", cut.name).returncode == 0, 60, f"{cut} is cleared", 0.5)

    def close(self):
        self.ends.set()
        self.thread.join(300)
        assert not self.thread.is_alive(), "a moment takes for ever"
        for cut in self.kept + self.times:
            if self.trouble is None:
                self.look(cut)
        for branch in self.branches:
            if self.trouble is None:
                self.look_at_branch(branch)
        self.say(f"{self.taken} moments taken, {self.refused} refused, {self.noted} times noted, {self.read} reads of both, {self.restored} times put back, {self.branched} branches")
        for what, seconds in self.seconds.items():
            if seconds:
                self.say(f"{what} in {statistics.median(seconds):.2f} s (median), {max(seconds):.2f} s (the longest)")
        if self.trouble:
            raise self.trouble


def test_cuts_with_node_stops_and_tablet_moves(fleet, request, tmp_path):
    seed = request.config.getoption("--seed") or random.randrange(1 << 32)
    minutes, calm_s = request.config.getoption("--minutes"), request.config.getoption("--calm")
    clock, capture = Clock(), request.config.pluginmanager.get_plugin("capturemanager")

    def say(words):
        with capture.global_and_fixture_disabled():
            print(f"{clock}  {words}", flush=True)

    say(f"seed {seed}")
    writers = Writers(fleet.nodes)
    machine = TimeMachine(fleet, writers, seed, say)
    try:
        words = [word for word in request.config.getoption("--faults").split(",") if word] or FAULTS
        nemesis = Nemesis(fleet, random.Random(seed), tmp_path / "faults.jsonl", say, words)
        # The first tablets are split while moments are taken.
        helenus.wait_until(lambda: "Can be read from : 2" in nodetool(fleet.nodes[0], "pointintime").stdout, 60, "the first moment is kept", 0.2)
        nemesis.strike(SPLITS)
        end = minutes * 60
        while float(str(clock).split()[0]) < end and not machine.ends.is_set():
            nemesis.strike(nemesis.chance.choice(nemesis.names))
            hold(fleet, calm_s)
    finally:
        try:
            machine.close()
        finally:
            writers.close()
    assert machine.taken > 0 and machine.looks >= 6 * minutes, (machine.taken, machine.looks, machine.refused, machine.last_refusal)
