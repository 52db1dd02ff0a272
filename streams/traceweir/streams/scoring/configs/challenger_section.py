"""Reads the section `challenger` of a pushed config, whether or not the config can be used."""

from __future__ import annotations

from traceweir.schemas.base import JsonObject
from traceweir.schemas.pushed_config import PushedConfig


def section_of(pushed: PushedConfig) -> JsonObject | None:
    """Returns the section `challenger` of a config; None if it has none."""
    found = (pushed.config or {}).get("challenger")
    return found if isinstance(found, dict) else None


def name_in(pushed: PushedConfig) -> str | None:
    """Returns the name of a config's challenger; None if it has none."""
    name = (section_of(pushed) or {}).get("name")
    return name if isinstance(name, str) else None
