"""`helenus import --since` brings what was written since a time: after an earlier import, the node answers what one answers that has all files."""

import datetime
import json
import re
import subprocess

import pytest

import answers
import features
import helenus
from agreement import differences
from importing import TIMEOUT_S, command, run_import
from test_golden import FILES, laid_out, session, statements, untimed, written  # noqa: F401: fixtures

pytestmark = pytest.mark.process

VERSION = "nb"
SINCE = [features.NOW_US + later for later in (1, 100, 110, 200)]
ONLY = ["--table", f"{features.KEYSPACE}.deletions"]


def written_before(time_us):
    """Returns the statements that write to the table `deletions` with earlier timestamps."""
    found = []
    for statement in statements():
        if "deletions" in statement and not statement.startswith("ALTER"):
            [stamp] = set(re.findall(r"TIMESTAMP (\d+)", statement))
            found += [statement] if int(stamp) < time_us else []
    return found


def older_sstables(table, time_us):
    """Returns the number of SSTables whose newest write is older, by what Cassandra reads in their statistics."""
    lines = (FILES / VERSION / table / "lines").read_text().splitlines()
    return sum(int(line.split()[3]) < time_us for line in lines if line.startswith("S timestamp"))


@pytest.mark.parametrize("since", SINCE)
def test_second_import_brings_the_rest(since, session, written, tmp_path):  # noqa: F811
    for statement in written_before(since):
        session.execute(statement)
    data = laid_out(VERSION, tmp_path / VERSION)
    for _ in range(2):
        report = json.loads(run_import(session.node, data, "--no-schema", "--since", str(since), "--json", *ONLY))
        wrong = differences({"deletions": written["deletions"]}, untimed(answers.of(session.node)))
        assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:20])
    assert [table["older_sstables"] for table in report["tables"]] == [older_sstables("deletions", since)]
    run_import(session.node, data, "--no-schema", "--since", str(since), "--verify", *ONLY)


def test_collection_is_replaced(session, tmp_path):  # noqa: F811
    """A statement that replaces a collection deletes the old one with a timestamp that is lower by one than its own."""
    table, since = f"{features.KEYSPACE}.collections", features.NOW_US + 40
    session.execute(f"UPDATE {table} USING TIMESTAMP {since - 2} SET s = s + {{'stale'}}, m = m + {{'stale': 1}} WHERE k = 1 AND c = 3")
    report = json.loads(run_import(session.node, laid_out(VERSION, tmp_path / VERSION), "--no-schema", "--since", str(since), "--json", "--table", table))
    [row] = session.execute(f"SELECT s, m FROM {table} WHERE k = 1 AND c = 3")
    assert (set(row.s), dict(row.m)) == ({"new"}, {"new": 1})
    assert report["tables"][0]["older_sstables"] == older_sstables("collections", since) > 0


def test_verification_finds_only_later_writes(session, tmp_path):  # noqa: F811
    data, since = laid_out(VERSION, tmp_path / VERSION), features.NOW_US + 200
    said = run_import(session.node, data, "--no-schema", "--since", str(since), "--verify", "--pause", "0s", *ONLY, exit_code=1)
    assert "after the partition" not in said and "k = 0, a = 1, b = 'p', c = 1: the row is missing on the target" in said
    assert "k = 7" not in said


def test_dates_are_times_too(session, tmp_path):  # noqa: F811
    data = laid_out(VERSION, tmp_path / VERSION)
    reports = []
    for since in (str(features.NOW_US), datetime.datetime.fromtimestamp(features.NOW_US // 1_000_000, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")):
        report = json.loads(run_import(session.node, data, "--no-schema", "--dry-run", "--since", since, "--json", *ONLY))
        reports.append([{name: value for name, value in table.items() if name != "seconds"} for table in report["tables"]])
    assert reports[0] == reports[1]


def test_counters_and_wrong_times_are_refused(session, tmp_path):  # noqa: F811
    data = laid_out(VERSION, tmp_path / VERSION)
    said = run_import(session.node, data, "--no-schema", "--since", str(features.NOW_US), exit_code=1)
    assert f"{features.KEYSPACE}.counters: --since can't be used for counters" in said
    assert not answers.of(session.node)["collections"], "nothing is sent before"
    done = subprocess.run(command(session.node, data, "--since", "yesterday"), text=True, capture_output=True, timeout=TIMEOUT_S)
    assert done.returncode == 2 and "'yesterday' is no time" in done.stderr
