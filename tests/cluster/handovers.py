"""Prints the durations of the steps of hand-overs, from the nodes' logs.

    ./test cluster --faults drain,SIGTERM,rolling --minutes 1 --keep FOLDER --set log=info,helenus_tablet=debug
    python tests/cluster/handovers.py FOLDER

A tablet is unavailable from when its former owner stops writes until its next owner serves it. With `helenus_tablet::remote::counted=trace`
in the log, the requests of the slowest hand-overs are shown too.
"""

import datetime
import pathlib
import re
import statistics
import sys

LINE = re.compile(r"^(?:\x1b\[\d+m)*(\S+Z)(?:\x1b\[\d+m)*\s+(?:\x1b\[\d+m)*(\w+)(?:\x1b\[\d+m)*\s+(.*)$")
FIELD = re.compile(r"(\w+)=(\S+)")
SHOWN = 5


def lines(folder):
    """Returns all lines of all nodes: the time (ms), the node, the text, and the fields."""
    found = []
    for log in sorted(pathlib.Path(folder).glob("node*/*.log")):
        with open(log, errors="replace") as file:
            for line in file:
                if match := LINE.match(line):
                    at = datetime.datetime.fromisoformat(match[1].replace("Z", "+00:00")).timestamp() * 1000
                    found.append((at, log.parent.name, match[3], dict(FIELD.findall(match[3]))))
    return sorted(found, key=lambda line: line[0])


def handovers(found):
    """Returns the hand-overs: the tablet, the two nodes, and the times of the steps in ms since writes stopped."""
    closed, ahead, done = {}, {}, []
    for at, node, text, fields in found:
        tablet = fields.get("tablet")
        if "the tablet is closed" in text:
            silence = float(fields["closed_ms"]) - float(fields["served_ms"])
            closed[tablet] = (node, at - silence, silence, float(fields["served_ms"]))
        elif "is open ahead of time" in text:
            ahead[tablet] = (at, float(fields["took_ms"]))
        elif "the tablet can be served" in text and tablet in closed:
            former, since, silence, flush = closed.pop(tablet)
            began = at - float(fields["ready_ms"]) - since
            early, took = ahead.pop(tablet, (0, 0))
            # One that was opened ahead is taken over when it is the node's.
            early = early - since if early > since else began
            done.append({
                "tablet": tablet, "from": former, "to": node, "since": since, "flush": flush, "closed": silence,
                "begun": early - took if early != began else began, "ahead": early, "opening": began,
                "built": began + float(fields["built_ms"]), "replayed": began + float(fields["replayed_ms"]), "open": at - since,
            })
    return done


def row(name, values):
    values = sorted(values)
    part = lambda share: values[min(len(values) - 1, int(len(values) * share))]
    return f"| {name} | {statistics.median(values):.0f} | {part(0.9):.0f} | {values[-1]:.0f} |"


def main():
    found = lines(sys.argv[1])
    done = handovers(found)
    if not done:
        sys.exit("no hand-over in these logs; the nodes' log must show helenus_tablet=debug")
    print(f"{len(done)} hand-overs, ms since the tablet took no more writes:\n")
    print("| | median | 90% | longest |\n|---|---|---|---|")
    print(row("its last flush, before that", [one["flush"] for one in done]))
    steps = {"closed": "its former owner is done", "begun": "its next owner begins to open it", "ahead": "it is open ahead of time",
             "opening": "it is the next owner's", "built": "its database is open", "replayed": "batches are looked for", "open": "it is served"}
    for step, name in steps.items():
        print(row(name, [one[step] for one in done]))
    for one in sorted(done, key=lambda one: -one["open"])[:SHOWN]:
        times = ", ".join(f"{step} {one[step]:.0f}" for step in ("flush", *steps))
        print(f"\ntablet {one['tablet']}, {one['from']} to {one['to']}: {times}")
        for at, node, text, fields in found:
            if "location" in fields and f"tablets/{one['tablet']}/" in fields["location"] and 0 <= at - one["since"] <= one["open"]:
                failed = " failed" if fields["failed"] == "true" else ""
                print(f"  {at - one['since']:6.0f} {node} {fields['kind'].strip(chr(34))} {fields['location']} {fields['took_us']} µs{failed}")


if __name__ == "__main__":
    main()
