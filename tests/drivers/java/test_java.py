"""Runs the Java driver 4 program of this folder against a real node."""

import pytest

from toolchains import check_program


@pytest.mark.timeout(1800)
def test_java(subtests, toolchains, target):
    check_program(subtests, toolchains.java(), target)
