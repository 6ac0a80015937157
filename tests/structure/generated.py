#!/usr/bin/env python3
"""Checks that generated sources belong to the files that they were generated from.

The first line of a generated source has the SHA-256 of its origin.
"""

import hashlib
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SERVER = ROOT / 'crates/helenus-server'
# Generated source, its origin, and the command that generates it again.
GENERATED = [(SERVER / 'src/rpc/proto.rs', SERVER / 'proto/node.proto',
              'cargo run --manifest-path crates/helenus-server/proto/generate/Cargo.toml')]


def stale(generated, origin):
    """Returns true if the source was generated from another version of its origin."""
    with generated.open() as file:
        return hashlib.sha256(origin.read_bytes()).hexdigest() not in file.readline()


def main():
    wrong = [row for row in GENERATED if stale(*row[:2])]
    for generated, origin, command in wrong:
        print(f'{generated.relative_to(ROOT)}: {origin.name} has changed since it was generated; run: {command}')
    if wrong:
        sys.exit(1)
    print(f'generated: {len(GENERATED)} sources are up to date')


if __name__ == '__main__':
    main()
