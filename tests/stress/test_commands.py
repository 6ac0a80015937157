"""Commands that need no server: list, info, fields, help, and refusals."""

import subprocess

import pytest

import loader

WORKLOADS = ["kv", "many-tables", "dense-kv", "batch-mutate", "user-quorum", "tombstones", "timeseries", "wide-rows",
             "counters", "lwt", "collections", "hot-keys", "scan", "create-drop", "queue", "surge"]


def test_list_names_every_workload():
    listed = [line.split()[0] for line in loader.command("list").splitlines()]
    assert listed == WORKLOADS


@pytest.mark.parametrize("workload", WORKLOADS)
def test_info_shows_tables_and_operations(workload):
    text = loader.command("info", workload)
    assert "CREATE TABLE IF NOT EXISTS" in text
    assert "Operations" in text and "%" in text


def test_info_of_a_reports_workload_says_what_was_published():
    text = loader.command("info", "MultiTableKeyValue")
    assert "tables=10 (or nbTables)" in text and "68M writes" in text


def test_fields_lists_the_generators():
    assert "book(min,max)" in loader.command("fields")


def test_help_explains_the_exit_status():
    text = loader.command("--help")
    assert "Examples:" in text and "verification failed" in text


@pytest.mark.parametrize("words, complaint", [
    (["run", "nothing"], "no workload"),
    (["run", "kv", "--workload.x=1"], "no parameter"),
    (["run", "kv", "--field.kv.v=dice()"], "no field"),
    (["run", "kv", "--port", "1"], "can't connect"),
    (["repro", "nothing"], "no experiment"),
])
def test_what_cannot_run_is_said(words, complaint):
    done = subprocess.run([loader.binary(), *words], text=True, capture_output=True, timeout=60)
    assert done.returncode == 1 and complaint in done.stderr, done.stderr
