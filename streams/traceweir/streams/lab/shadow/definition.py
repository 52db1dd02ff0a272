"""Defines what a shadow is: the config, the sessions and the budget. All its processes have the same definition."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from traceweir.schemas.text import printable
from traceweir.streams.lab.shadow.errors import ShadowOptionError

Offsets = Mapping[int, int]
"""An offset of the topic `sessions` by partition."""
_Share = Annotated[float, Field(gt=0, le=1)]


class Definition(BaseModel):
    """What a shadow is, as in the record of its name on the topic `shadows`."""

    model_config = ConfigDict(frozen=True)

    format: Literal[1] = 1
    name: str
    config: str | None
    """The text of the config; None: the default criteria."""
    config_digest: str
    since: str | None
    """The option `--from` as it was given; None: from the oldest session."""
    until: str | None
    """The option `--to` as it was given; None: up to the sessions that existed when the shadow was created."""
    app: str | None
    sample: _Share
    budget_usd: float | None
    sessions_id: str
    """The id of the topic `sessions`: the offsets mean nothing on another topic of the same name."""
    begins: dict[int, int]
    """The first offset of the range by partition."""
    ends: dict[int, int]
    """The offset after the range by partition."""
    created_at: datetime

    @property
    def size(self) -> int:
        """The number of offsets of the range. Some offsets have no record, because they end transactions."""
        return sum(end - self.begins[number] for number, end in self.ends.items())

    @property
    def in_words(self) -> str:
        """The options by which it was created, as on the command line; the config by its digest."""
        given = [f"{option} {_shown(value)}" for option, value in self.options if value is not None]
        return ", ".join([f"config {self.config_digest[:12]}", *given])

    @property
    def options(self) -> Sequence[tuple[str, str | float | None]]:
        """The options of the command by which it was created, without the config; None: not given."""
        return (
            ("--from", self.since),
            ("--to", self.until),
            ("--app", self.app),
            ("--sample", self.sample),
            ("--budget", self.budget_usd),
        )


@dataclass(frozen=True, slots=True)
class ShadowOptions:
    """The options of `traceweir shadow`, as they were given; None: not given."""

    name: str
    config: str | None = None
    """The text of the config."""
    config_digest: str | None = None
    since: str | None = None
    until: str | None = None
    app: str | None = None
    sample: float | None = None
    budget_usd: float | None = None

    def differences(self, found: Definition) -> Iterator[str]:
        """Yields a phrase for each given option that differs from an existing shadow of this name.

        >>> from datetime import UTC
        >>> found = Definition(
        ...     name="v2", config=None, config_digest="d", since="7d", until=None, app="shop", sample=1.0, budget_usd=None,
        ...     sessions_id="t", begins={0: 0}, ends={0: 9}, created_at=datetime(2026, 1, 31, tzinfo=UTC),
        ... )
        >>> changed = ShadowOptions("v2", app="bank", sample=0.1)
        >>> list(ShadowOptions("v2", since="7d").differences(found)), list(changed.differences(found))
        ([], ["--app is 'shop', not 'bank'", '--sample is 1, not 0.1'])
        """
        if self.config_digest not in (None, found.config_digest):
            yield f"--config has the digest {found.config_digest[:12]}, not {str(self.config_digest)[:12]}"
        given_options = self.since, self.until, self.app, self.sample, self.budget_usd
        for given, (option, existing) in zip(given_options, found.options, strict=True):
            if given is not None and given != existing:
                yield f"{option} is {_shown(existing)}, not {_shown(given)}"


def _shown(value: str | float | None) -> str:
    if value is None:
        return "not set"
    return repr(printable(value, 200)) if isinstance(value, str) else f"{value:g}"


def read_sample(value: float) -> float:
    """Returns a share of sessions.

    Raises:
        ShadowOptionError: the share is not above 0 and at most 1.
    """
    if not 0 < value <= 1:
        raise ShadowOptionError(
            f"{value:g} is not a share of sessions: use a number above 0 and at most 1, such as 0.1"
        )
    return value


def read_usd(text: str) -> float:
    """Returns the USD of a budget: `5usd`, `5 USD` or `5`.

    >>> read_usd("0.5usd")
    0.5

    Raises:
        ShadowOptionError: the text is not an amount above 0.
    """
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?) ?(?:usd)?", text.strip(), re.IGNORECASE)
    amount = float(found[1]) if found else 0.0
    if not amount:
        raise ShadowOptionError(f"{printable(text, 80)!r} is not an amount: write USD above 0, such as 5usd or 0.5usd")
    return amount
