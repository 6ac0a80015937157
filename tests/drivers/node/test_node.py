"""Runs the Node driver program of this folder against a real node."""

import pytest

from toolchains import check_program


@pytest.mark.timeout(1800)
def test_node(subtests, toolchains, target):
    check_program(subtests, toolchains.node(), target)
