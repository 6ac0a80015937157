"""Random histories have the same answers on a Cassandra, on nodes on a folder and on nodes on a bucket, whatever is done to these."""

import collections
import json
import pathlib
import random
import time

import pytest

from arena import SHORT_PLAY, Arena, choose_shakes
from compare import compare, told
from histories import histories
from shrink import shrink

pytestmark = [pytest.mark.process, pytest.mark.timeout(0)]

# Maximum number of differences, with probably different causes, whose histories are shrunk.
SHRUNK_MAX = 4
# Maximum percentage of histories without an outcome, which a busy machine may cause.
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
    servers = Arena(folder / "servers", say)
    yield servers
    servers.close()


def one_of_each_kind(differences):
    """Returns the smallest difference of each kind. The most different kinds come first."""
    kinds, seen = {}, collections.Counter()
    for difference in sorted(differences, key=lambda difference: difference.size):
        kinds.setdefault(difference.kind, difference)
    order = {}
    for kind in kinds:
        _, *unlike = kind
        order[kind] = seen[tuple(unlike)]
        seen[tuple(unlike)] += 1
    return [kinds[kind] for kind in sorted(kinds, key=order.get)]


def judge(arena, folder, played, shakes, seed, shrink_rounds, repeat):
    """Plays the histories; fails with the smallest difference of each kind."""
    found, unjudged = compare(played, arena.play(played, shakes, seed))
    arena.say(f"{seed}: {len(played)} histories, {len(found)} differ, {unjudged} without an outcome")
    assert unjudged * 100 <= len(played) * UNJUDGED_PERCENT_MAX, f"{unjudged} histories have writes without an outcome"
    if not found:
        return
    kinds = one_of_each_kind(found)
    others = kinds[SHRUNK_MAX:]
    smallest = shrink(arena, kinds[:SHRUNK_MAX], shakes, seed, shrink_rounds)
    path = folder / "differences.json"
    path.write_text(json.dumps({"shakes": list(shakes), "histories": [d.history for d in smallest + others]}, indent=1))
    words = [told(difference, shakes) for difference in smallest] + [f"{d.title} (as {', '.join(d.wrong)} answers it)" for d in others]
    pytest.fail(f"{len(found)} of {len(played)} histories differ, in {len(kinds)} ways:\n\n" + "\n\n".join(words) +
                f"\n\nThese again: ./test differential --replay {path}\nAll again: {repeat}", pytrace=False)


def test_histories(arena, folder, say, request):
    option = request.config.getoption
    if option("--replay"):
        kept = json.loads(pathlib.Path(option("--replay")).read_text())
        copies = kept["histories"] * max(1, 50 // len(kept["histories"]))
        judge(arena, folder, copies, kept["shakes"], "replay", option("--shrink"), f"./test differential --replay {option('--replay')}")
        return
    seed = option("--seed") if option("--seed") is not None else random.randrange(1 << 32)
    say(f"seed {seed}, in {folder}")
    count, end, number = option("--histories"), time.monotonic() + option("--minutes") * 60, 0
    while number == 0 or time.monotonic() < end:
        name = f"{seed}/{number}"
        shakes = choose_shakes(name) if number else SHORT_PLAY
        say(f"play {number}: {', '.join(shakes)}")
        judge(arena, folder, histories(name, count, len(shakes) + 1), shakes, name, option("--shrink"),
              f"./test differential --seed {seed} --histories {count} --minutes {option('--minutes'):g}")
        number += 1
