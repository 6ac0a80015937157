"""A node that has died is shown as down until it comes back or is removed."""

import json
import re

import pytest

import helenus
from tool import nodetool, two_nodes

pytestmark = pytest.mark.process


@pytest.fixture
def nodes(tmp_path):
    """Yields two nodes of a cluster."""
    with two_nodes(tmp_path, tablets=4) as made:
        yield made


def states(node):
    """Returns the letters of each node in `nodetool status`, by its address."""
    lines = nodetool(node, "status").stdout.splitlines()
    return {line.split()[1]: line.split()[0] for line in lines if re.match(r"[UD][NLJM] ", line)}


def test_dead_node_is_down_until_return_or_removal(nodes):
    first, second = nodes
    both_up = {"127.0.0.1": "UN", "127.0.0.2": "UN"}
    down = {"127.0.0.1": "UN", "127.0.0.2": "DN"}
    owned = lambda node: sum(tablet["owner"] == json.loads(node.http("/node")[1])["host_id"] for tablet in json.loads(node.http("/cluster")[1])["tablets"])
    helenus.wait_until(lambda: states(first) == both_up, what="two nodes up")
    host_ids = {node["cql_address"]: node["host_id"] for node in json.loads(first.http("/cluster")[1])["nodes"]}
    host_id = host_ids[f"127.0.0.2:{second.port}"]
    refused = nodetool(first, "removenode", host_id)
    assert refused.returncode == 1 and "is in the cluster" in refused.stderr, refused

    second.kill()
    # All of its tablets have another owner by then: it is out of the cluster, and still shown.
    helenus.wait_until(lambda: owned(first) == 4, what="all tablets")
    assert states(first) == down
    described = nodetool(first, "describecluster").stdout
    assert "#Nodes: 2 #Down: 1" in described and re.search(r"^\tUnreachable: 1$", described, re.M), described
    assert re.search(r"^\t\tUNREACHABLE: \[127\.0\.0\.2\]$", described, re.M), described

    refused = nodetool(first, "removenode", "11111111-1111-1111-1111-111111111111")
    assert refused.returncode == 1 and "there is no node" in refused.stderr, refused
    assert nodetool(first, "removenode", host_id).returncode == 0
    assert states(first) == {"127.0.0.1": "UN"}
    second.start()
    helenus.wait_until(lambda: states(first) == both_up, what="the node to be back")
