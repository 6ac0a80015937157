#!/usr/bin/env python3
"""Shows that the simulation of whole nodes finds defects that are put into the nodes on purpose.

    python3 tests/mutants/run.py                         all mutants, at most 2,000 seeds each
    python3 tests/mutants/run.py fence-left-out          some of them
    python3 tests/mutants/run.py --seeds 100             fewer seeds

Each mutant is a patch in this folder: a line that says what is wrong, the scenario that should find it, and the change. The change takes effect
if HELENUS_SIM_DEFECT has the mutant's name, so that all mutants are built together, in a copy of the committed sources. Each is then searched
for alone. Takes about an hour on two cores.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Simulators are several times faster with it, and it needs no other build of the dependencies.
OPTIMIZED = ['--config', 'profile.dev.opt-level=1']


def header(patch):
    """Returns the description and the scenario of a mutant."""
    lines = patch.read_text().splitlines()
    return lines[0], lines[1].removeprefix('scenario: ')


def build(folder, patches):
    """Builds the simulation with all mutants, and returns its path."""
    subprocess.run(['git', 'worktree', 'add', '-q', '--detach', folder, 'HEAD'], cwd=ROOT, check=True)
    for patch in patches:
        subprocess.run(['git', 'apply', '-C1', str(patch)], cwd=folder, check=True)
    command = ['cargo', 'test', *OPTIMIZED, '-p', 'helenus-server', '--test', 'simulation', '--no-run']
    environment = {'CARGO_TARGET_DIR': str(ROOT / 'target'), **os.environ}
    printed = subprocess.run(command, cwd=folder, env=environment, check=True, stderr=subprocess.PIPE, text=True).stderr
    path = printed.rsplit('(', 1)[1].split(')')[0]
    return os.path.join(folder, path)


def search(binary, name, scenario, seeds):
    """Returns the line that says by which seed a mutant was found. None if it was not."""
    environment = {**os.environ, 'HELENUS_SIM_DEFECT': name, 'HELENUS_SIM_SCENARIO': scenario, 'HELENUS_SIM_SEEDS': str(seeds)}
    command = [binary, '--exact', 'a_named_defect_is_found', '--ignored', '--nocapture']
    printed = subprocess.run(command, env=environment, capture_output=True, text=True).stdout
    return next((line for line in printed.splitlines() if line.startswith('found by')), None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('names', nargs='*', help='mutants; all if none is named')
    parser.add_argument('--seeds', type=int, default=2000, help='seeds among which a mutant must be found')
    arguments = parser.parse_args()
    patches = sorted(HERE.glob('*.patch'))
    unknown = set(arguments.names) - {patch.stem for patch in patches}
    if unknown:
        sys.exit(f'no such mutant: {", ".join(sorted(unknown))}; there are {", ".join(patch.stem for patch in patches)}')
    missed = []
    with tempfile.TemporaryDirectory() as parent:
        folder = os.path.join(parent, 'mutants')
        try:
            binary = build(folder, patches)
            for patch in patches:
                if arguments.names and patch.stem not in arguments.names:
                    continue
                why, scenario = header(patch)
                found = search(binary, patch.stem, scenario, arguments.seeds)
                print(f'{patch.stem}: {found or "NOT FOUND"} of {scenario}. {why}', flush=True)
                if not found:
                    missed.append(patch.stem)
        finally:
            subprocess.run(['git', 'worktree', 'remove', '--force', folder], cwd=ROOT)
    if missed:
        sys.exit(f'not found: {", ".join(missed)}')


if __name__ == '__main__':
    main()
