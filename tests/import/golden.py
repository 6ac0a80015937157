"""Writes the golden files of the crate helenus-sstable: small SSTables of each version, and what Cassandra's own classes read in them.

Run it from this folder with the Python of the tests: `PYTHONPATH=.. python golden.py`.
"""

import shutil

import cassandras
import helenus
from made import COMPACTED, EARLY, MONDAY, made

TESTDATA = helenus.ROOT / "crates/helenus-sstable/testdata"
COMPONENTS = ("Data.db", "Statistics.db", "CompressionInfo.db", "CRC.db", "Digest.crc32", "TOC.txt")
# Tables and their snapshots by the name of the release, and the folder.
CHOSEN = {
    "3.11-md": [("collections", EARLY), ("deletions", COMPACTED)],
    "3.11": [("collections", COMPACTED), ("deletions", COMPACTED), ("kinds", EARLY), ("compact_dense", COMPACTED), ("counters", COMPACTED), ("compressed_lz4", COMPACTED)],
    "4.0-na": [("collections", EARLY), ("deletions", COMPACTED)],
    "4.0": [("collections", MONDAY), ("deletions", MONDAY), ("kinds", EARLY), ("counters", COMPACTED), ("evolving", MONDAY), ("sparse", COMPACTED),
            ("compressed_lz4_ratio", COMPACTED), ("compressed_snappy", COMPACTED), ("compressed_deflate", COMPACTED), ("compressed_zstd", COMPACTED),
            ("compressed_noop", COMPACTED)],
    "4.1": [("random_rows", COMPACTED)],
    "5.0-oa": [("collections", MONDAY), ("deletions", MONDAY), ("kinds", EARLY), ("ends", EARLY), ("vectors", EARLY), ("compressed_plain", COMPACTED)],
    "5.0-da": [("collections", EARLY), ("deletions", COMPACTED), ("ends", EARLY), ("counters", COMPACTED), ("deep", COMPACTED)],
}


def main():
    shutil.rmtree(TESTDATA / "files", ignore_errors=True)
    for name, tables in CHOSEN.items():
        data = made(cassandras.release_named(name))
        for table, snapshot in tables:
            folder = TESTDATA / "files" / data.release.formats[0] / table
            folder.mkdir(parents=True, exist_ok=True)
            for file in sorted(data.snapshot(snapshot, table).iterdir()):
                if file.name.endswith(COMPONENTS):
                    shutil.copyfile(file, folder / file.name)
            # Without indexes and filters, the table of contents names what was copied.
            for toc in folder.glob("*-TOC.txt"):
                prefix = toc.name.removesuffix("TOC.txt")
                toc.write_text("".join(f"{part.name.removeprefix(prefix)}\n" for part in sorted(folder.glob(f"{prefix}*"))))
            lines = data.lines_of_cassandra(sorted(data.snapshot(snapshot, table).glob("*-Data.db")))
            (folder / "lines").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
