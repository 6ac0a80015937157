#!/usr/bin/env python3
"""Checks that the crates and the rooms in them stand on each other without circles, that no test has a stopwatch (stopwatches.py), and that
sentences are plain (prose.py).

A room is a module with all that is in it. Of the children of one module none may need itself by way of others; what
their parent's own file defines is everybody's. `floors.txt` says which crate and which floor stands below which, and
which circles there still are.

    check.py                            checks, and says what is wrong
    check.py --edges CRATE FROM [TO]    every place where the room FROM (a::b) names something of the room TO
"""

import pathlib
import sys

import paths
import prose
import stopwatches
from modules import Crate

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


class Table:
    """Content of `floors.txt`."""

    def __init__(self, text):
        self.crates = []
        self.apart = []
        self.floors = {}
        self.circles = set()
        for number, line in enumerate(text.splitlines(), 1):
            line = line.partition('#')[0].strip()
            if not line:
                continue
            head, _, rest = line.partition(': ')
            words = head.split()
            if words == ['crates']:
                self.crates = rest.split()
            elif words == ['apart']:
                self.apart = rest.split()
            elif words[0] == 'floors' and len(words) == 2:
                self.floors[words[1]] = rest.split()
            elif words[0] == 'circle' and len(words) == 2:
                self.circles.add((words[1], frozenset(rest.split())))
            else:
                raise ValueError(f'floors.txt:{number}: {line}')


def edges_of(crate, floors=()):
    """Returns the references between the children of each parent, by parent and pair of children.

    A room whose children are in `floors` stands on several floors. Its children replace it in the crate.
    """
    parents = {}
    split = {floor.partition('::')[0] for floor in floors if '::' in floor}
    for reference in crate.references():
        source, target = reference.source, reference.target
        if split & {*source[:1], *target[:1]}:
            pair = floor_of(source, split), floor_of(target, split)
            if None not in pair and pair[0] != pair[1]:
                parents.setdefault((), {}).setdefault(pair, []).append(reference)
            if source[:1] != target[:1]:
                continue
        shared = 0
        while shared < min(len(source), len(target)) and source[shared] == target[shared]:
            shared += 1
        if shared < len(source) and shared < len(target):
            pair = source[shared], target[shared]
            parents.setdefault(source[:shared], {}).setdefault(pair, []).append(reference)
    return parents


def floor_of(module, split):
    """Returns the floor of a crate's module. `None` for the crate's own file, and for that of a room on several floors."""
    if module[:1] and module[0] in split:
        return '::'.join(module[:2]) if len(module) > 1 else None
    return module[0] if module else None


def circles_of(pairs):
    """Returns the strongly connected groups, in which every member needs all others directly or indirectly (Tarjan)."""
    following = {}
    for source, target in pairs:
        following.setdefault(source, []).append(target)
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in following.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            place = stack.index(node)
            if len(stack) - place > 1:
                found.append(frozenset(stack[place:]))
            del stack[place:]

    sys.setrecursionlimit(10_000)
    for node in sorted(following):
        if node not in index:
            visit(node)
    return found


def shown(reference):
    file = reference.file
    if file.is_relative_to(ROOT):
        file = file.relative_to(ROOT)
    return f'{file}:{reference.line}: {reference.text}'


def pair_line(pair, references):
    more = f' (and {len(references) - 1} more)' if len(references) > 1 else ''
    return f'    {pair[0]} -> {pair[1]}  {shown(references[0])}{more}'


def check_crate(crate, table):
    """Returns the problems of one crate, as lines of text."""
    wrong, known = [], {members for name, members in table.circles if name == crate.name}
    for parent, pairs in sorted(edges_of(crate, table.floors.get(crate.name, ())).items()):
        if not parent and crate.name in table.floors:
            wrong += upward(crate.name, table.floors[crate.name], pairs)
        for members in circles_of(pairs):
            names = frozenset('::'.join(parent + (member,)) for member in members)
            if names in known:
                known.discard(names)
                continue
            smaller = [old for old in known if old < names]
            known -= set(smaller)
            grown = f', grown from {" and ".join(str(len(old)) for old in smaller)}' if smaller else ''
            wrong.append(f'{crate.name}: a circle of {len(members)}{grown} in {"::".join(parent) or "the crate"}:')
            inner = {pair: found for pair, found in pairs.items() if pair[0] in members and pair[1] in members}
            wrong += [pair_line(pair, found) for pair, found in sorted(inner.items())]
            if larger := [old for old in known if names < old]:
                known -= set(larger)
                wrong.append('  A known circle has become smaller. Its line in floors.txt is now:')
                wrong.append(f'  circle {crate.name}: {" ".join(sorted(names))}')
    for members in sorted(known, key=sorted):
        wrong.append(f'{crate.name}: a known circle is no more; take its line out of floors.txt: {" ".join(sorted(members))}')
    return wrong


def upward(name, floors, pairs):
    wrong = []
    unknown = {room for pair in pairs for room in pair} - set(floors)
    if unknown:
        wrong.append(f'{name}: not among the floors in floors.txt: {" ".join(sorted(unknown))}')
    for pair, found in sorted(pairs.items()):
        if not unknown & set(pair) and floors.index(pair[0]) < floors.index(pair[1]):
            wrong.append(f'{name}: {pair[0]} stands below {pair[1]} and must not name it:')
            wrong.append(pair_line(pair, found))
    return wrong


def check_crates(crates, table):
    """Returns a line for each crate that uses one above it, or one that it must not use."""
    wrong = []
    for crate in crates:
        if crate.name not in table.crates + table.apart:
            wrong.append(f'{crate.name}: not in floors.txt')
            continue
        for other, (file, line) in sorted(crate.crates.items()):
            if other == crate.name or other not in table.crates + table.apart:
                continue
            below = other in table.crates and (
                crate.name in table.apart or table.crates.index(other) < table.crates.index(crate.name))
            if not below:
                wrong.append(f'{crate.name} must not use {other}: {file.relative_to(ROOT) if file.is_relative_to(ROOT) else file}:{line}')
    return wrong


def check(folders, table):
    crates = [Crate(folder) for folder in folders]
    wrong = check_crates(crates, table)
    for crate in crates:
        wrong += check_crate(crate, table)
    return wrong


def print_edges(name, source, target=''):
    source, target = (tuple(text.split('::')) if text else () for text in (source, target))
    crate = Crate(ROOT / 'crates' / name)
    for reference in crate.references():
        if reference.source[:len(source)] != source or reference.target[:len(source)] == source:
            continue
        if reference.target[:len(target)] == target:
            print('::'.join(reference.source), '->', '::'.join(reference.target) or 'the root', ' ', shown(reference))


def main(arguments):
    if arguments[:1] == ['--edges']:
        return print_edges(*arguments[1:])
    table = Table((HERE / 'floors.txt').read_text())
    wrong = check(sorted(path.parent for path in ROOT.glob('crates/*/Cargo.toml')), table)
    wrong += stopwatches.check(ROOT, stopwatches.read_exceptions((HERE / 'stopwatches.txt').read_text()))
    wrong += paths.check(ROOT) + prose.check(ROOT) + prose.in_commits(ROOT)
    for line in wrong:
        print(line)
    if wrong:
        sys.exit(1)
    print(f'structure: {len(table.crates + table.apart)} crates, {len(table.circles)} known circles')


if __name__ == '__main__':
    main(sys.argv[1:])
