"""The data that a release of Cassandra wrote: its data folder with snapshots, and what it answered.

The data is made once and kept in the cache. A release takes a minute or two.
"""

import json
import pathlib
import shutil
import subprocess

import answers
import cassandras
import features
from toolchains import CACHE, built_once, content_hash

HERE = pathlib.Path(__file__).resolve().parent
# Snapshots, in the order in which they are taken: after two flushes; of all data; and of all data after a compaction.
EARLY, MONDAY, COMPACTED = "early", "monday", "compacted"
# After this round, the files of some tables are compacted, so that the last snapshot has compacted and new files.
COMPACTED_ROUND = 4
DUMP_TIMEOUT_S = 300


class Made:
    """Data of a release. `data` is the data folder of the stopped node."""

    def __init__(self, release, folder):
        self.release, self.folder, self.data = release, folder, folder / "node/data"

    def answers(self):
        """Returns the answers of Cassandra when the last snapshots were taken, by table."""
        return json.loads((self.folder / "answers.json").read_text())

    def snapshot(self, name, table):
        """Returns the folder of a table's snapshot."""
        [folder] = self.data.glob(f"{features.KEYSPACE}/{table}-*/snapshots/{name}")
        return folder

    def data_files(self):
        """Returns all files Data.db, of system tables as well."""
        return sorted(self.data.glob("**/*-Data.db"))

    def lines_of_cassandra(self, files):
        """Returns what Cassandra's own classes read in these files, in lines (see the example `sstable_dump` of helenus-sstable)."""
        out = self.folder / "lines"
        words, path = cassandras.java_command(self.release, "512M")
        node = self.folder / "node"
        done = subprocess.run(
            ["nice", "-n", "10", *words, f"-Dcassandra.config=file://{node}/cassandra.yaml", f"-Dcassandra.storagedir={node}",
             f"-Dlogback.configurationFile={HERE}/java/quiet.xml", "-cp", f"{cassandras.compiled(self.release.version, 'dump')}:{path}", "SstableLines",
             str(out), *map(str, files)],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DUMP_TIMEOUT_S)
        assert done.returncode == 0, done.stdout[-4000:]
        return out.read_text().splitlines()


def made(release):
    """Returns the data of a release, which is made the first time."""
    sources = ["features.py", "cassandras.py", "made.py", "answers.py"]
    out = CACHE / "import" / f"made-{release}-{content_hash(HERE, sources)}"
    with built_once(out) as is_due:
        if is_due:
            make(release, out)
    return Made(release, out)


def make(release, out):
    node = cassandras.CassandraNode(release, out / "node").start()
    try:
        session = node.connect()
        for statement in features.schema(release):
            session.execute(statement)
        for number, statements in enumerate(features.rounds(release)):
            for statement in statements:
                session.execute(statement)
            node.nodetool("flush", features.KEYSPACE)
            if number == 1:
                node.nodetool("snapshot", "-t", EARLY, features.KEYSPACE)
            if number == COMPACTED_ROUND:
                node.nodetool("compact", features.KEYSPACE, "random_rows", "deletions")
        node.nodetool("snapshot", "-t", MONDAY, features.KEYSPACE)
        (out / "answers.json").write_text(json.dumps(answers.of(node)))
        node.nodetool("compact", features.KEYSPACE)
        node.nodetool("snapshot", "-t", COMPACTED, features.KEYSPACE)
    finally:
        node.stop()
    for place in ("commitlog", "hints", "saved_caches", "cdc_raw"):
        shutil.rmtree(out / "node" / place, ignore_errors=True)
