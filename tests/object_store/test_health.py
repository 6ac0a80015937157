"""The health of a node whose bucket does not answer: it lives, it is not ready, and says why."""

import json

import pytest

import helenus
from faulty_proxy import FaultyProxy

pytestmark = pytest.mark.process


def test_a_node_whose_bucket_is_away_lives_but_is_not_ready(bucket, nodes, minio):
    proxy = FaultyProxy(minio.host, minio.port)
    try:
        node = nodes(bucket, minio.environment(proxy.endpoint)).start()
        assert node.http("/health/ready")[0] == 200 and node.metrics()["helenus_ready"] == 1
        proxy.rule = lambda method, path: ("refuse", 503)
        helenus.wait_until(lambda: node.http("/health/ready")[0] == 503, what="a node that is not ready")
        status, body = node.http("/health/ready")
        troubles = json.loads(body)["troubles"]
        assert len(troubles) == 1 and ("lease has run out" in troubles[0] or "joins the cluster" in troubles[0]), troubles
        assert node.http("/health/live")[0] == 200

        def warnings():
            return [line for line in node.log(10_000).splitlines() if " WARN " in line and "the node is not ready" in line]

        helenus.wait_until(warnings, what="a warning")
        proxy.rule = lambda method, path: None
        helenus.wait_until(lambda: node.http("/health/ready")[0] == 200, what="a node that is ready again")
        helenus.wait_until(lambda: "the node is ready again" in node.log(10_000), what="a line that it is")
        assert len(warnings()) == 1, warnings()
    finally:
        proxy.close()
