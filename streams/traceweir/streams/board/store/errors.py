"""Defines the errors of a results store."""

from __future__ import annotations


class StoreError(Exception):
    """The store cannot be used as it is; the message states the reason and the way out."""


class StoreLostError(StoreError):
    """Another process has taken the store over. This process must not write to it any more."""


class StoreUnavailableError(StoreError):
    """The store cannot write now, for example because its disk is full. Its offsets tell what is stored."""
