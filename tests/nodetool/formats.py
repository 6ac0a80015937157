"""Parts of a command's output that a script depends on: labels, columns and keys, without the values."""

import json
import pathlib
import re

RECORDED = pathlib.Path(__file__).parent / "recorded"


def recorded(name):
    """Returns the recorded output of Cassandra 5.0.5."""
    return (RECORDED / name).read_text()


def commands():
    """Returns the commands that Cassandra's `nodetool help` lists."""
    return re.findall(r"^    ([a-z_]+) ", recorded("help.txt"), re.M)


def labels(text, colon=":"):
    """Returns the text before the first colon of each line that has one."""
    return [line.split(colon)[0].strip() for line in text.splitlines() if colon in line]


def heads(line):
    """Returns the columns of a head, whose names contain no spaces."""
    return line.split()


def keys(document):
    """Returns the keys of a JSON document: those of a map, or of the first map in a list."""
    return sorted(document) if isinstance(document, dict) else sorted(document[0]) if document else []


def yaml_keys(text):
    """Returns the keys at the top level of a YAML document."""
    return sorted(re.findall(r"^(\w+):", text, re.M))


def parsed(text):
    return json.loads(text)


def is_subsequence(part, whole):
    whole = iter(whole)
    return all(one in whole for one in part)
