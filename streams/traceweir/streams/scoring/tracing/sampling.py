"""Chooses the sessions that are traced, by their ids, so that all stages of all workers choose alike."""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

from traceweir.schemas.text import printable
from traceweir.streams.base.errors import InvalidSettingsError

DEFAULT_SHARE = 0.01
"""The share of the sessions that is traced without `OTEL_TRACES_SAMPLER`."""


def share_of_environment(environment: Mapping[str, str]) -> float:
    """Returns the share of the sessions that is traced, from 0 to 1.

    Spans of a session have no parent in another process, so that `parentbased_traceidratio` means `traceidratio`.

    >>> share_of_environment({"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.5"})
    0.5

    Raises:
        InvalidSettingsError: the sampler is not supported, or its argument is no number from 0 to 1.
    """
    sampler = environment.get("OTEL_TRACES_SAMPLER", "")
    match sampler.removeprefix("parentbased_"):
        case "":
            return DEFAULT_SHARE
        case "always_on":
            return 1.0
        case "always_off":
            return 0.0
        case "traceidratio":
            return _share(environment.get("OTEL_TRACES_SAMPLER_ARG") or "1")
    raise InvalidSettingsError(
        f"OTEL_TRACES_SAMPLER={printable(sampler, 100)}: the samplers are always_on, always_off and traceidratio, also with "
        "the prefix parentbased_"
    )


def bound_of(share: float) -> int:
    """Returns the bound for `is_chosen`, from 0 to 2**32."""
    return round(share * (1 << 32))


def is_chosen(session_id: bytes, bound: int) -> bool:
    """Returns whether a session is among the share of a bound.

    The checksum takes a tenth of a microsecond, and a cryptographic hash one: each session is asked about in each stage.
    """
    return crc32(session_id) < bound


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise InvalidSettingsError(
            f"OTEL_TRACES_SAMPLER_ARG={printable(text, 100)}: the share of the sessions that is traced is a number from 0 to 1"
        )
    return share
