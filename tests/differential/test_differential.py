"""Random histories have the same answers on a Cassandra, on nodes on a folder and on nodes on a bucket, whatever is done to these."""

import json
import os
import pathlib
import random
import time

import pytest

from arena import SHORT_PLAY, Arena, choose_shakes
from compare import compare, told
from histories import histories
from shrink import shrink

CI = os.environ.get("CI") == "true"
pytestmark = [pytest.mark.process, pytest.mark.timeout(0)]

# Of so many differences that seem to have different causes a smaller history is looked for.
SHRUNK_MAX = 4
SHRINK_ROUNDS = 1 if CI else 4
# What a busy machine may leave without an outcome.
UNJUDGED_PERCENT_MAX = 5


@pytest.fixture
def folder(request, tmp_path):
    keep = request.config.getoption("--keep")
    chosen = pathlib.Path(keep) if keep else tmp_path
    chosen.mkdir(parents=True, exist_ok=True)
    return chosen


@pytest.fixture
def say(request):
    """Prints while the test runs."""
    capture, began = request.config.pluginmanager.get_plugin("capturemanager"), time.monotonic()

    def say(words):
        with capture.global_and_fixture_disabled():
            print(f"{time.monotonic() - began:7.1f} s  {words}", flush=True)

    return say


@pytest.fixture
def arena(folder, say):
    servers = Arena(folder, say)
    yield servers
    servers.close()


def one_of_each_kind(differences):
    """The smallest difference of each kind."""
    kinds = {}
    for difference in sorted(differences, key=lambda difference: difference.size):
        kinds.setdefault(difference.kind, difference)
    return list(kinds.values())


def judge(arena, folder, played, shakes, seed, repeat):
    """Plays the histories; fails with the smallest difference of each kind."""
    found, unjudged = compare(played, arena.play(played, shakes, seed))
    arena.say(f"{seed}: {len(played)} histories, {len(found)} differ, {unjudged} without an outcome")
    assert unjudged * 100 <= len(played) * UNJUDGED_PERCENT_MAX, f"{unjudged} histories have writes without an outcome"
    if not found:
        return
    kinds = one_of_each_kind(found)
    smallest = shrink(arena, kinds[:SHRUNK_MAX], shakes, seed, SHRINK_ROUNDS)
    path = folder / "differences.json"
    path.write_text(json.dumps({"shakes": list(shakes), "histories": [d.history for d in smallest + kinds[SHRUNK_MAX:]]}, indent=1))
    words = "\n\n".join(told(difference, shakes) for difference in smallest + kinds[SHRUNK_MAX:])
    pytest.fail(f"{len(found)} of {len(played)} histories differ, in {len(kinds)} ways:\n\n{words}\n\n"
                f"These again: ./test differential --replay {path}\nAll again: {repeat}", pytrace=False)


def test_histories(arena, folder, say, request):
    option = request.config.getoption
    if option("--replay"):
        kept = json.loads(pathlib.Path(option("--replay")).read_text())
        copies = kept["histories"] * max(1, 50 // len(kept["histories"]))
        judge(arena, folder, copies, kept["shakes"], "replay", f"./test differential --replay {option('--replay')}")
        return
    seed = option("--seed") if option("--seed") is not None else random.randrange(1 << 32)
    say(f"seed {seed}, in {folder}")
    count, end, number = option("--histories"), time.monotonic() + option("--minutes") * 60, 0
    while number == 0 or time.monotonic() < end:
        name = f"{seed}/{number}"
        shakes = choose_shakes(name) if number else SHORT_PLAY
        say(f"play {number}: {', '.join(shakes)}")
        judge(arena, folder, histories(name, count, len(shakes) + 1), shakes, name,
              f"./test differential --seed {seed} --histories {count} --minutes {option('--minutes'):g}")
        number += 1
