"""Runs the Rust driver (scylla) program of this folder against a real node."""

import pytest

from toolchains import check_program


@pytest.mark.timeout(1800)
def test_rust(subtests, toolchains, target):
    check_program(subtests, toolchains.rust(), target)
