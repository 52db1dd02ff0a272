"""Reads the texts of the simulated agents: what users ask in each domain, and what agents think, find and answer."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from pydantic import TypeAdapter

from traceweir.schemas.base import ConfigModel


class Scene(ConfigModel):
    """A question with its answer. With `tools`, the agent calls these in turn, and each returns `finds`."""

    asks: str
    answers: str
    finds: str = ""
    tools: Sequence[str] = ()


class Domain(ConfigModel):
    """The work of one app. Its texts contain placeholders, which get new values for every session."""

    name: str
    """The `task_domain` of the traces."""
    app: str
    tools: Sequence[str]
    words: Mapping[str, Sequence[str]]
    """The values of each placeholder; those of `{ref}`, `{n}` and `{m}` are made up."""
    scenes: Sequence[Scene]
    says: Mapping[str, Sequence[str]]
    """Texts by the type of a step."""
    evasion: str
    """An answer that misses every question."""

    def case(self, rng: random.Random, ref_start: str = "") -> dict[str, str]:
        """Returns values for the placeholders; the reference number begins with `ref_start`, or else with any letters."""
        initials = "".join(rng.choice("ABCDEFGHJKLMNPRSTUVWXY") for _ in range(3))
        numbers = {"n": str(rng.randrange(11, 99)), "m": str(rng.randrange(101, 999))}
        ref = f"{ref_start or initials}-{rng.randrange(1000, 10_000)}"
        return {name: rng.choice(values) for name, values in self.words.items()} | numbers | {"ref": ref}


@cache
def domains() -> list[Domain]:
    """Returns the domains of the demo; the last one is that of the story of `traceweir up --demo`."""
    return TypeAdapter(list[Domain]).validate_json(files(__package__).joinpath("texts.json").read_bytes())
