"""Three nodes on a real object store, under all kinds of faults: the history that clients saw is linearizable and complete."""

import json
import subprocess

import pytest

pytestmark = [pytest.mark.process, pytest.mark.timeout(0)]


def judge(checker, run, history, *more):
    return subprocess.run([*checker, "check", "--history", str(history), *more], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def test_what_clients_saw(checker, run, request):
    report = run.folder / "report.md"
    done = judge(checker, run, run.history, "--faults", str(run.faults), "--report", str(report),
                 "--pictures", str(run.folder / "pictures"))
    run.say(f"report in {report}\n\n{done.stdout}")
    # The report is printed above; what failed comes last, where a shortened log still shows it.
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAULT") or "**" in line]
    assert done.returncode == 0, "\n".join([*failed, f"seed and report: {report}"])


def test_the_cluster_was_well_after_every_fault(run):
    if run.trouble:
        raise run.trouble


def test_tablets_were_split_and_merged(run, request):
    if request.config.getoption("--faults"):
        pytest.skip("only some faults were asked for")
    steps = list(zip(run.tablet_counts, run.tablet_counts[1:]))
    assert any(after < before for before, after in steps) and any(after > before for before, after in steps), run.tablet_counts


class History:
    """A recorded history, to be changed."""

    def __init__(self, path):
        with open(path) as file:
            self.header, *self.lines = file.readlines()
        self.ops = [json.loads(line) for line in self.lines]

    def of(self, kind, call=None, **fields):
        """Returns the operations that succeeded, in the order in which they began."""
        fits = lambda op: (op["kind"] == kind and call in (None, op["call"]) and op["outcome"] == "ok"
                           and all(op.get(name) == value for name, value in fields.items()))
        return sorted(filter(fits, self.ops), key=lambda op: op["invoke"])

    def clean_keys(self, kind):
        """Yields the operations of each key without unknown outcomes, in the order in which they began."""
        keys = {}
        for op in self.ops:
            if op["kind"] == kind:
                keys.setdefault(op["key"], []).append(op)
        for ops in keys.values():
            if all(op["outcome"] == "ok" for op in ops):
                yield sorted(ops, key=lambda op: op["invoke"])

    def write(self, path):
        with open(path, "w") as file:
            file.write(self.header)
            file.writelines(json.dumps(op) + "\n" for op in self.ops)


def alone(op, ops):
    """Returns true if no other operation on the key was concurrent."""
    return all(other is op or other["return"] < op["invoke"] or other["invoke"] > op["return"] for other in ops)


def stale_read(history):
    """Makes the last read return an overwritten value."""
    for ops in history.clean_keys("register"):
        writes = [op for op in ops if op["call"] == "write" and alone(op, ops)]
        if len(writes) > 1:
            read = next(op for op in ops if op.get("final"))
            assert read.get("found") != writes[0]["value"]
            read["found"] = writes[0]["value"]
            return "not linearizable"


def lost_write(history):
    """Makes an acknowledged write disappear: the read after it returns the value before it."""
    for ops in history.clean_keys("register"):
        for at, (write, read) in enumerate(zip(ops, ops[1:])):
            before = next((op["found"] for op in reversed(ops[:at]) if op["call"] == "read" and op.get("found")), 0)
            if write["call"] == "write" and read["call"] == "read" and alone(write, ops) and alone(read, ops) and before:
                read["found"] = before
                return "not linearizable"


def two_winners(history):
    """Makes a condition that was false appear to have been true."""
    for ops in history.clean_keys("cas"):
        for op in ops:
            if op["call"] == "insert" and not op.get("applied") and alone(op, ops):
                op["applied"], op["found"] = True, 0
                return "not linearizable"


def lost_condition(history):
    """Makes a condition that was true appear to have been false, although its write is there."""
    for ops in history.clean_keys("cas"):
        for op, after in zip(ops, ops[1:]):
            if op["call"] == "insert" and op.get("applied") and alone(op, ops) and after.get("found") == op["value"]:
                op["applied"], op["found"] = False, 1 << 40
                return "not linearizable"


def counted_twice(history):
    read = next(ops for ops in history.clean_keys("counter"))[-1]
    assert read["final"]
    read["found"] = read.get("found", 0) + 1
    return "in the end, not"


def lost_row(history):
    written = {op["value"] for op in history.of("row", "write")}
    next(op for op in history.of("row", "read", final=True) if op.get("found") in written)["found"] = 0
    return "was written (ok) and reads 0"


def row_missed_by_a_scan(history):
    scan = history.of("row", "scan", final=True)[0]
    written = {op["value"] for op in history.of("row", "write")}
    scan["rows"] = [value for value in scan["rows"] if value != min(written)]
    return "a scan missed"


def row_on_two_pages(history):
    scan = history.of("partition", "scan", final=True)[0]
    scan["rows"].append(scan["rows"][-1])
    return "twice"


def row_from_nowhere(history):
    history.of("partition", "scan", final=True)[0]["rows"].append(1 << 40)
    return "which nobody wrote"


def half_a_batch(history):
    next(op for op in history.of("batch", "read") if op["found"])["found"] -= 1
    return "has 4 of 5 rows"


def phantom(kind):
    """Makes a search find a row that has another value."""
    def phantom_of(history):
        for ops in history.clean_keys(kind):
            if find := next((op for op in reversed(ops) if op["call"] == "find" and not op.get("found")), None):
                find["found"] = find["value"]
                return "not linearizable"
    phantom_of.__name__ = f"phantom_of_{kind}"
    return phantom_of


def lost(kind):
    """Makes a search miss a row."""
    def lost_by(history):
        for ops in history.clean_keys(kind):
            if find := next((op for op in ops if op.get("final") and op["call"] == "find" and op.get("found")), None):
                find["found"] = 0
                return "not linearizable"
    lost_by.__name__ = f"lost_by_{kind}"
    return lost_by


SEARCHED = ("index", "range", "nearest", "view")
ALTERATIONS = [stale_read, lost_write, two_winners, lost_condition, counted_twice, lost_row, row_missed_by_a_scan,
               row_on_two_pages, row_from_nowhere, half_a_batch, *map(phantom, SEARCHED), *map(lost, SEARCHED)]


@pytest.mark.parametrize("alter", ALTERATIONS, ids=lambda alter: alter.__name__)
def test_a_history_that_cannot_be_is_found_out(checker, run, tmp_path, request, alter):
    """The recorded history with one answer changed."""
    if request.config.getoption("--minutes") > 5 or request.config.getoption("--faults"):
        pytest.skip("shown by short runs with all faults")
    history = History(run.history)
    words = alter(history)
    assert words, "nothing to change in this history"
    history.write(tmp_path / "altered.jsonl")
    done = judge(checker, run, tmp_path / "altered.jsonl")
    assert done.returncode == 1, done.stdout
    assert words in done.stdout, done.stdout
