"""A store that is changed at random: each remembered moment is read again as a time, a snapshot, a branch and a restore, and from backups in another store."""

import random
import time

import pytest

import helenus
from history_of_chance import Chance, check, remember, tables
from tool import at, done, said

pytestmark = [pytest.mark.process, pytest.mark.timeout(0)]

# Moments that are remembered at one time, and backups whose times are read.
KEPT = 60
BACKUPS = 3
PAST = helenus.setting_args({"point_in_time_window": "24h", "auto_snapshot": "false"})


@pytest.fixture
def nodes(tmp_path):
    """Yields the node that is changed, and one for restored backups."""
    made = [helenus.Node(tmp_path / "changed", args=PAST), helenus.Node(tmp_path / "other", args=["--set", "auto_snapshot=false"])]
    try:
        yield [node.start() for node in made]
    finally:
        for node in made:
            node.close()


class Looks:
    """Reads remembered moments in one way or another."""

    def __init__(self, chance, other, place):
        self.chance, self.other, self.place = chance, other, place
        self.session = other.connect()
        self.count, self.backups = 0, 0

    def look(self, state):
        way = self.chance.random.choice([self.as_time, self.as_time, self.as_snapshot, self.as_branch])
        way(state)
        self.count += 1

    def as_time(self, state):
        check(self.chance.session, state, f"AS OF {state.time_ms}")

    def as_snapshot(self, state):
        keyspaces = self.keyspaces(state)
        if not keyspaces:
            return
        keyspace, tag = self.chance.random.choice(keyspaces), f"look{self.count}"
        done(self.chance.node, "snapshot", "--as-of", str(state.time_ms), "-t", tag, keyspace)
        check(self.chance.session, state, f"AS OF SNAPSHOT {tag}", only=f"{keyspace}.")
        done(self.chance.node, "clearsnapshot", "-t", tag)

    def as_branch(self, state):
        keyspaces = self.keyspaces(state)
        if not keyspaces:
            return
        keyspace, branch = self.chance.random.choice(keyspaces), f"look{self.count}"
        self.chance.run(f"CREATE KEYSPACE {branch} AS COPY OF {keyspace} AS OF {state.time_ms}")
        check(self.chance.session, state, renamed=lambda name: f"{branch}.{name.split('.')[1]}", only=f"{keyspace}.")
        self.chance.run(f"DROP KEYSPACE {branch}")

    @staticmethod
    def keyspaces(state):
        return sorted({name.split(".")[0] for name in state.rows})

    def back_up(self, between):
        """Writes a backup, and restores some of the moments between it and the one before."""
        self.backups += 1
        said("backup", *at(self.chance.node), "--to", self.place, "--name", f"b{self.backups}", "--keep", str(BACKUPS))
        report = said("backup", "verify", "--from", self.place)
        assert self.backups == 1 or "Can be restored to any time from" in report, report
        if self.backups == 1:
            return
        for state in self.chance.random.sample(between, min(2, len(between))):
            for keyspace in tables(self.session):
                self.session.execute(f"DROP KEYSPACE {keyspace}")
            said("restore", *at(self.other), "--from", self.place, "--as-of", state.time_ms)
            check(self.session, state)
            self.count += 1


def test_times_of_randomly_changed_store(nodes, request, tmp_path):
    seed = request.config.getoption("--seed") or random.randrange(1 << 32)
    node, other = nodes
    chance = Chance(node, random.Random(seed))
    looks = Looks(chance, other, tmp_path / "backups")
    helenus.wait_until(lambda: "Can be read from : 2" in done(node, "pointintime"), 20, "the first moment is kept", 0.1)
    looks.back_up([])
    kept, since_backup, steps = [], [], 0
    end = time.monotonic() + 60 * request.config.getoption("--minutes")
    try:
        while time.monotonic() < end:
            steps += 1
            chance.step(kept)
            if chance.random.random() < 0.15:
                kept.append(remember(chance.session))
                since_backup.append(kept[-1])
            if len(kept) > KEPT:
                kept.pop(chance.random.randrange(len(kept)))
            if kept and chance.random.random() < 0.1:
                looks.look(chance.random.choice(kept))
            if chance.random.random() < 0.01 and since_backup:
                looks.back_up(since_backup)
                since_backup = []
        if since_backup:
            looks.back_up(since_backup)
        for state in kept:
            looks.as_time(state)
    except BaseException as error:
        raise AssertionError(f"seed {seed}, step {steps}, after {dict(chance.done)}: {error}") from error
    capture = request.config.pluginmanager.get_plugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print(f"seed {seed}: {steps} steps {dict(chance.done)}, {looks.count} looks at moments, {looks.backups} backups", flush=True)
    assert looks.count > 0
