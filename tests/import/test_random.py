"""Random tables with a random history are equal after `helenus import`, whichever release of Cassandra wrote them."""

import pathlib
import random
import shutil
import time

import pytest
from cassandra import InvalidRequest, ReadFailure, WriteFailure
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import ConfigurationException, ServerError, SyntaxException

import answers
import cassandras
import helenus
from agreement import differences
from importing import compare, run_import
from random_history import History

pytestmark = [pytest.mark.process, pytest.mark.timeout(0)]

RELEASES = [cassandras.release_named(name) for name in ("5.0-oa", "5.0-da", "5.0-nb", "4.1", "4.0", "3.11")]
SNAPSHOT = "monday"
# A release stays up for so many rounds.
ROUNDS_PER_RELEASE = 4
SHOWN, FAILED_MAX = 8, 10
REFUSED_PERCENT_MAX = 25
# Cassandra fails on some strange values and schemas with errors of the server, after which the driver has no other host.
REFUSALS = (InvalidRequest, SyntaxException, ConfigurationException, ServerError, WriteFailure, ReadFailure, NoHostAvailable)


@pytest.fixture
def folder(request, tmp_path):
    keep = request.config.getoption("--keep")
    return pathlib.Path(keep) if keep else tmp_path


@pytest.fixture
def say(request):
    """Prints while the test runs."""
    capture, began = request.config.pluginmanager.get_plugin("capturemanager"), time.monotonic()

    def say(words):
        with capture.global_and_fixture_disabled():
            print(f"{time.monotonic() - began:7.1f} s  {words}", flush=True)

    return say


class Round:
    """One keyspace: its history on a Cassandra, the import and the comparison."""

    def __init__(self, seed, cassandra, node):
        self.seed, self.cassandra, self.node = seed, cassandra, node
        self.keyspace = f"r{seed}"
        self.history = History(seed, cassandra.release, self.keyspace)
        self.done, self.refused = [], []

    def execute(self, session, statement):
        """Executes a statement. Returns false if Cassandra refuses it."""
        try:
            session.execute(statement)
        except REFUSALS as error:
            self.refused.append(f"{statement} -- {error}")
            return False
        self.done.append(statement)
        return True

    def write(self):
        """Plays the history, and takes a snapshot."""
        session, chance = self.cassandra.connect(), random.Random(self.seed)
        for statement in self.history.schema():
            assert self.execute(session, statement), self.refused
        for phase in range(self.history.phases):
            for statement in self.history.statements():
                self.execute(session, statement)
            # A flush comes before a change of the schema, because a memtable shows cells of a dropped column.
            self.cassandra.nodetool("flush", self.keyspace)
            if chance.random() < 0.4:
                self.cassandra.nodetool("compact", self.keyspace, *chance.sample([table.name for table in self.history.tables], 2))
            for statement, succeeded in self.history.alterations() if phase + 1 < self.history.phases else []:
                if self.execute(session, statement):
                    succeeded()
        self.cassandra.nodetool("snapshot", "-t", SNAPSHOT, self.keyspace)

    def differences(self):
        """Imports the snapshot. Returns the differences that the comparisons find."""
        options = ["--snapshot", SNAPSHOT, "--keyspace", self.keyspace]
        run_import(self.node, self.cassandra.data, *options)
        found = []
        for check in (lambda: run_import(self.node, self.cassandra.data, *options, "--verify"),
                      lambda: compare(self.cassandra, self.node, "--keyspace", self.keyspace)):
            try:
                check()
            except AssertionError as error:
                found.append(str(error))
        return found + differences(*(answers.of(server, self.keyspace) for server in (self.cassandra, self.node))) + self._json_differences()

    def _json_differences(self):
        """Compares the results of SELECT JSON. Older releases write some values in other forms, and Cassandra fails on an empty boolean."""
        if not self.cassandra.release.has(5, 0):
            return []
        ours, found = self.node.connect(self.keyspace), []
        for table in self.history.tables:
            query = f"SELECT JSON * FROM {table.name}"
            try:
                expected = [row.json for row in self.cassandra.connect(self.keyspace).execute(query)]
            except REFUSALS:
                continue
            read = [row.json for row in ours.execute(query)]
            found += [f"{table.name}: JSON: {left} is expected, {right} was found" for left, right in zip(expected, read) if left != right]
        return found

    def keep(self, folder):
        """Moves the files of the snapshot to a folder, from which they can be imported again."""
        for snapshot in self.cassandra.data.glob(f"{self.keyspace}/*/snapshots/{SNAPSHOT}"):
            (folder / str(self.seed)).mkdir(exist_ok=True)
            shutil.move(snapshot, folder / str(self.seed) / snapshot.parents[1].name.partition("-")[0])

    def clear(self):
        for server in (self.cassandra, self.node):
            server.connect().execute(f"DROP KEYSPACE IF EXISTS {self.keyspace}")
            server.close_clients()
        shutil.rmtree(self.cassandra.data / self.keyspace, ignore_errors=True)


def play(seed, cassandra, node, folder, say):
    """Plays a round. Returns a description of its differences, or None if all is equal."""
    played = Round(seed, cassandra, node)
    try:
        played.write()
        found = played.differences()
    except Exception as error:
        found = [f"{type(error).__name__}: {error}"]
    total = len(played.done) + len(played.refused)
    say(f"seed {seed}: {cassandra.release}, {len(played.history.tables)} tables, {total} statements, {len(played.refused)} refused, "
        f"{len(found)} differences")
    if len(played.refused) * 100 > total * REFUSED_PERCENT_MAX:
        found.append("too many statements were refused")
    if found:
        played.keep(folder)
    played.clear()
    if not found:
        return None
    lines = [f"seed {seed} ({cassandra.release}): {len(found)} differences", *(line[-3000:] for line in found[:SHOWN])]
    (folder / f"{seed}.cql").write_text("".join(f"{statement};\n" for statement in played.done) + "".join(f"-- refused: {each}\n" for each in played.refused))
    (folder / f"{seed}.txt").write_text("\n".join(lines + found[SHOWN:]))
    lines.append(f"The statements are in {folder / f'{seed}.cql'}, the snapshot in {folder / str(seed)}. This round again: ./test import --minutes 0 --seed {seed} -k random")
    return "\n".join(lines)


def test_random_histories_are_equal_after_an_import(folder, say, request):
    """Plays rounds until the time is over. The seed of a round chooses the release, too."""
    option, chance = request.config.getoption, random.Random()
    seed = option("--seed") if option("--seed") is not None else chance.randrange(1 << 31)
    end, failed, is_first = time.monotonic() + option("--minutes") * 60, [], True
    folder.mkdir(parents=True, exist_ok=True)
    node = helenus.Node(folder / "node").start()
    try:
        while is_first or time.monotonic() < end:
            release = RELEASES[seed % len(RELEASES)]
            cassandra = cassandras.CassandraNode(release, folder / f"cassandra-{seed}").start()
            try:
                for _ in range(ROUNDS_PER_RELEASE):
                    is_first, failure = False, play(seed, cassandra, node, folder, say)
                    if failure:
                        say(failure)
                        failed.append(failure)
                    assert len(failed) < FAILED_MAX, "\n\n".join(failed)
                    if time.monotonic() >= end:
                        break
                    # The next seed chooses the same release.
                    seed += len(RELEASES)
            finally:
                cassandra.close()
            seed = chance.randrange(1 << 31)
    finally:
        node.close()
    assert not failed, "\n\n".join(failed)
