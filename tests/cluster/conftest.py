"""A recorded run of three nodes under load and faults, which the tests of this folder judge."""

import os
import pathlib
import random
import time
import types

import pytest

import copies  # noqa: F401: it registers faults
import toolchains
from fleet import Fleet
from load import Load
from minio import Minio
from nemesis import Nemesis

CI = os.environ.get("CI") == "true"


@pytest.fixture(scope="session")
def checker():
    """Returns the command of the checker."""
    return toolchains.Toolchains().checker()


@pytest.fixture(scope="session")
def run(checker, request, tmp_path_factory):
    """Yields the run: its history, its faults, and the fleet's tablets. Progress is printed during the run."""
    option = request.config.getoption
    seed = option("--seed") if option("--seed") is not None else random.randrange(1 << 32)
    folder = pathlib.Path(option("--keep")) if option("--keep") else tmp_path_factory.mktemp("cluster")
    folder.mkdir(parents=True, exist_ok=True)
    capture = request.config.pluginmanager.get_plugin("capturemanager")
    began = time.monotonic()

    def say(words):
        with capture.global_and_fixture_disabled():
            print(f"{time.monotonic() - began:7.1f} s  {words}", flush=True)

    say(f"seed {seed}, in {folder}")
    history, faults = folder / "history.jsonl", folder / "faults.jsonl"
    for old in (history, faults):
        old.unlink(missing_ok=True)
    minio = Minio(folder / "minio").start()
    fleet = load = None
    try:
        fleet = Fleet(checker, minio, f"s3://{minio.bucket('cluster')}/store", folder, option("--set")).start()
        say("three nodes")
        with open(folder / "load.log", "w") as log:
            load = Load(checker, fleet, history, option("--rate"), seed, log)
            minutes, words = option("--minutes"), [word for word in option("--faults").split(",") if word]
            nemesis, trouble = Nemesis(fleet, random.Random(seed), faults, say, words), None
            try:
                nemesis.rounds(minutes * 60, 1.0 if minutes <= 5 else 3.0)
            except Exception as error:  # What clients saw until then is judged all the same.
                trouble = error
                say(f"TROUBLE: {error!r}")
            say("reading everything back")
            load.finish(120 + minutes * 60)
        say(f"tablets: {', '.join(map(str, fleet.tablet_counts))}")
        yield types.SimpleNamespace(folder=folder, history=history, faults=faults, trouble=trouble,
                                    tablet_counts=fleet.tablet_counts, say=say)
    finally:
        for thing in (load, fleet, minio):
            if thing is not None:
                thing.close()
        if not option("--keep"):
            history.unlink(missing_ok=True)
