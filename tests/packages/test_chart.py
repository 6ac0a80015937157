"""The Helm chart: linted and rendered by Helm itself, and decoded strictly into Kubernetes' own types."""

import pathlib
import re
import subprocess

import pytest

import helenus
import toolchains
from toolchains import HERE, go_program

CHART = helenus.ROOT / "deploy" / "helm" / "helenus"
ALL_VALUES = pathlib.Path(__file__).parent / "chart_values.yaml"
KUBERNETES = ["--kube-version", "1.30.0"]


@pytest.fixture(scope="module")
def helm():
    """Runs Helm; built from its module if it is not there."""
    program = toolchains.helm()
    return lambda *arguments: subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def decode():
    """Returns a function that decodes objects into Kubernetes' types, and returns their kinds and names."""
    command = go_program("the chart", HERE / "packages" / "kubernetes", "kubernetes")

    def run(text):
        ended = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.splitlines()

    return run


@pytest.fixture(scope="module")
def everything(helm):
    """Returns the chart's output for values that use all of it."""
    rendered = helm("template", "db", CHART, *KUBERNETES, "-f", ALL_VALUES)
    assert rendered.returncode == 0, rendered.stderr
    return rendered.stdout


def test_the_chart_is_without_fault(helm):
    for values in (["--set", "store=s3://bucket/store"], ["-f", ALL_VALUES]):
        linted = helm("lint", "--strict", CHART, *KUBERNETES, *values)
        assert linted.returncode == 0 and "0 chart(s) failed" in linted.stdout, linted.stdout


def test_a_store_is_required(helm):
    rendered = helm("template", "db", CHART, *KUBERNETES)
    assert rendered.returncode != 0 and "store is required" in rendered.stderr


def test_the_defaults_are_kubernetes_objects(helm, decode):
    rendered = helm("template", "db", CHART, *KUBERNETES, "--set", "store=s3://bucket/store").stdout
    names = decode(rendered)
    assert sorted(names) == ["ConfigMap db-helenus", "NetworkPolicy db-helenus", "PodDisruptionBudget db-helenus", "Secret db-helenus",
                             "Service db-helenus", "Service db-helenus-nodes", "ServiceAccount db-helenus", "StatefulSet db-helenus"]
    for line in ("readOnlyRootFilesystem: true", "runAsNonRoot: true", "path: /health/live", "path: /health/ready", "topologyKey: topology.kubernetes.io/zone"):
        assert line in rendered, line
    assert "AWS_ACCESS_KEY_ID" not in rendered


def test_values_are_valid_objects_and_zones_are_racks(everything, decode):
    names = decode(everything)
    sets = [name for name in names if name.startswith("StatefulSet")]
    assert sets == [f"StatefulSet db-helenus-eu-central-1{zone}" for zone in "abc"] and "ServiceMonitor db-helenus" in names
    for zone in "abc":
        assert f'{{name: HELENUS_RACK, value: "eu-central-1{zone}"}}' in everything
    assert "eks.amazonaws.com/role-arn: arn:aws:iam::1:role/helenus" in everything


@pytest.mark.process
def test_the_settings_are_those_that_a_node_takes(everything):
    block = re.search(r"helenus\.toml: \|\n((?:    .*\n)+)", everything).group(1)
    settings = re.findall(r'^    (\w+) = "(.*)"$', block, re.MULTILINE)
    assert len(settings) == len(block.splitlines()) > 15, block
    words = [word for name, value in settings for word in ("--set", f"{name}={value}")]
    ended = subprocess.run([helenus.binary(), "generate", "config", *words], capture_output=True, text=True, timeout=30)
    assert ended.returncode == 0, ended.stderr
    variables = re.findall(r"name: HELENUS_(\w+)", everything)
    assert {variable.lower() for variable in variables} <= set(re.findall(r"^#?(\w+) = ", ended.stdout, re.MULTILINE))
