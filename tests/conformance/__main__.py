"""python3 -m conformance record|check|compare: see README.md."""

import argparse
import collections
import concurrent.futures
import sys
import time

from . import cases as case_files
from . import golden
from .mutate import mutate
from .runner import run_case
from .wire import Connection


def address(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


def server_version(host, port, login):
    connection = Connection(host, port, login=login)
    answer = connection.query("SELECT release_version FROM system.local")
    connection.close()
    return "Apache Cassandra " + answer.rows[0][0].decode()


def guarded(case, target, timeout):
    try:
        return run_case(case, *target, timeout=timeout), None
    except Exception as e:
        return None, f"{type(e).__name__}: {e}"


def run_all(cases, target, jobs, timeout):
    """Yields (case, outcomes, failure) as they are done."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(guarded, c, target, timeout): c for c in cases}
        for future in concurrent.futures.as_completed(futures):
            yield (futures[future], *future.result())


def record(args):
    version = server_version(*args.a, args.cases[0].login if args.cases else None)
    count = 0
    for case, outcomes, failure in run_all(args.cases, args.a, args.jobs, args.timeout):
        if failure:
            print(f"{case.name}: {failure}")
            continue
        if args.again:
            for d in golden.compare(case, golden.read(case) or [], outcomes, {}):
                print_difference(d)
        golden.write(case, outcomes, version)
        count += len(outcomes)
    print(f"recorded {count} outcomes of {len(args.cases)} cases from {version}")
    return 0


def print_difference(d):
    known = f" (known: {d.reason})" if d.reason else ""
    print(f"\n{d.case.name}:{d.line} [{d.kind}]{known}\n  > {d.head}")
    for sign, lines in (("-", d.expected), ("+", d.actual)):
        for line in lines[:40]:
            print(f"  {sign} {line}")


def report(args, results):
    """Prints differences and a summary; returns the exit status."""
    total, differences, broken = 0, [], []
    per_area = collections.defaultdict(lambda: [0, 0])
    for case, outcomes, found in results:
        area = case.name.split("/")[0]
        if outcomes is None:
            broken.append((case, found))
            continue
        total += len(outcomes)
        per_area[area][0] += len(outcomes)
        per_area[area][1] += len([d for d in found if not d.reason])
        differences += found
    differences.sort(key=lambda d: (d.case.name, d.line))
    for d in differences:
        if not args.quiet and (args.kind is None or d.kind in args.kind.split(",")) and (args.known or not d.reason):
            print_difference(d)
    for case, failure in broken:
        print(f"\n{case.name}: could not run: {failure}")
    new = [d for d in differences if not d.reason]
    print(f"\n{'area':24}{'outcomes':>10}{'different':>11}")
    for area, (count, bad) in sorted(per_area.items()):
        print(f"{area:24}{count:>10}{bad:>11}")
    kinds = collections.Counter(d.kind for d in new)
    print(f"\n{total} outcomes: {total - len(differences)} the same, {len(new)} different "
          f"({', '.join(f'{k} {n}' for k, n in kinds.most_common())}), "
          f"{len(differences) - len(new)} known differences, {len(broken)} cases could not run")
    for d in differences:
        if d.reason:
            print(f"  known: {d.case.name}:{d.line}: {d.reason}")
    return 1 if new or broken else 0


def check(args):
    known = golden.known_differences()

    def results():
        for case, outcomes, failure in run_all(args.cases, args.a, args.jobs, args.timeout):
            expected = golden.read(case)
            if failure or expected is None:
                yield case, None, failure or "no golden file: record it first"
            else:
                yield case, outcomes, golden.compare(case, expected, outcomes, known)
    return report(args, results())


def compare(args):
    known = golden.known_differences()
    reference = {c.name: (o, f) for c, o, f in run_all(args.cases, args.b, args.jobs, args.timeout)}

    def results():
        for case, outcomes, failure in run_all(args.cases, args.a, args.jobs, args.timeout):
            expected, failure_b = reference[case.name]
            if failure or failure_b:
                yield case, None, failure or failure_b
            else:
                yield case, outcomes, golden.compare(case, [(o.head, o.lines) for o in expected], outcomes, known)
    return report(args, results())


def main():
    parser = argparse.ArgumentParser(prog="conformance", description=__doc__)
    parser.add_argument("mode", choices=["record", "check", "compare", "list"])
    parser.add_argument("filters", nargs="*", help="run cases whose name contains one of these")
    parser.add_argument("--a", type=address, default=("127.0.0.1", 9042), help="the server (default 127.0.0.1:9042)")
    parser.add_argument("--b", type=address, help="compare: the reference server")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--again", action="store_true", help="record: print what differs from the last record")
    parser.add_argument("--kind", help="print differences of these kinds only")
    parser.add_argument("--known", action="store_true", help="print known differences too")
    parser.add_argument("--mutate", type=int, metavar="SEED", help="compare: also statements made of the cases' by chance")
    parser.add_argument("--mutants", type=int, default=2, help="so many of each statement (default 2)")
    parser.add_argument("--secured", action="store_true", help="the cases of a server with passwords and permissions, and none else")
    parser.add_argument("--quiet", action="store_true", help="the summary only")
    args = parser.parse_intermixed_args()
    args.cases = case_files.load(args.filters, args.secured)
    if args.mutate is not None:
        if args.mode != "compare":
            parser.error("--mutate goes with compare: nothing is recorded of such statements")
        args.cases = [mutate(case, args.mutate, args.mutants) for case in args.cases]
    started = time.time()
    if args.mode == "list":
        for case in args.cases:
            print(case.name, len(case.steps))
        return 0
    status = {"record": record, "check": check, "compare": compare}[args.mode](args)
    print(f"{time.time() - started:.1f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
