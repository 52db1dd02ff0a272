"""Defines the errors that end `traceweir shadow`."""

from __future__ import annotations


class ShadowError(Exception):
    """A shadow cannot be created, run, stopped or dropped; the message contains the reason and the way out."""


class ShadowOptionError(ValueError):
    """An option of a shadow cannot be used; the message names the option, its value and the rule."""
