"""What a script could tell of the answer of a command: labels, columns and keys, without the values."""

import json
import pathlib
import re

RECORDED = pathlib.Path(__file__).parent / "recorded"


def recorded(name):
    """What Cassandra 5.0.5 has answered."""
    return (RECORDED / name).read_text()


def commands():
    """The commands that Cassandra's `nodetool help` lists."""
    return re.findall(r"^    ([a-z_]+) ", recorded("help.txt"), re.M)


def labels(text, colon=":"):
    """What stands before the first colon of each line that has one."""
    return [line.split(colon)[0].strip() for line in text.splitlines() if colon in line]


def heads(line):
    """The columns of a head, which two spaces or more part, or one where names have none."""
    return line.split()


def keys(document):
    """The names of a JSON document: a map's, or those of the first of a list."""
    return sorted(document) if isinstance(document, dict) else sorted(document[0]) if document else []


def yaml_keys(text):
    """The names at the left of a YAML document."""
    return sorted(re.findall(r"^(\w+):", text, re.M))


def parsed(text):
    return json.loads(text)


def is_subsequence(part, whole):
    whole = iter(whole)
    return all(one in whole for one in part)
