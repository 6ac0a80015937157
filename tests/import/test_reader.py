"""The crate helenus-sstable reads in the files of real nodes what Cassandra's own classes read in them."""

import os
import pathlib
import subprocess

import pytest

import cassandras
import helenus
from made import made
from toolchains import run

pytestmark = [pytest.mark.process, pytest.mark.timeout(0)]

READ_TIMEOUT_S = 600
SHOWN_FILES = 5


@pytest.fixture(scope="session")
def program():
    """Returns the path of the program that prints SSTables in lines."""
    run(["cargo", "build", "-q", "--workspace", "--example", "sstable_dump"], helenus.ROOT)
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR", helenus.ROOT / "target")) / "debug/examples/sstable_dump"


def by_file(lines):
    """Returns the lines of each file."""
    files = []
    for line in lines:
        if line.startswith("F "):
            files.append([])
        files[-1].append(line)
    return files


def first_difference(expected, found):
    for number, (left, right) in enumerate(zip(expected, found)):
        if left != right:
            return f"line {number}: {left[:300]} is expected, {right[:300]} was read"
    return f"{len(expected)} lines are expected, {len(found)} were read"


@pytest.mark.parametrize("release", cassandras.RELEASES, ids=str)
def test_reader_agrees_with_cassandra(release, program):
    data = made(release)
    files = data.data_files()
    assert {file.name.split("-")[0] for file in files} == set(release.formats)
    done = subprocess.run([program, "--lines", *files], capture_output=True, timeout=READ_TIMEOUT_S)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    expected, found = by_file(data.lines_of_cassandra(files)), by_file(done.stdout.decode().splitlines())
    assert len(expected) == len(found) == len(files)
    differences = [f"{file}: {first_difference(left, right)}" for file, left, right in zip(files, expected, found) if left != right]
    assert not differences, f"{len(differences)} of {len(files)} files differ:\n" + "\n".join(differences[:SHOWN_FILES])
