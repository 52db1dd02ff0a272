"""Fixtures of the tests of commands."""

from tests.support.cli_inputs import write_input

__all__ = ["write_input"]
