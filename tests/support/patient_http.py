"""Asks a process that a test has started, and waits as long as a busy machine needs for the answer."""

from __future__ import annotations

import functools

import httpx

get = functools.partial(httpx.get, timeout=90)
"""`httpx.get` gives up after five seconds, in which a process beside many others may not have its turn."""
