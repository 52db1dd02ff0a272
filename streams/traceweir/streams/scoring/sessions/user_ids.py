"""Replaces the user ids of invocations by hashes, before scores and candidates are made from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pydantic import SecretStr

from traceweir.schemas.dimensions import hashed_user_id
from traceweir.schemas.turns import Turn

# The scoring process reads no settings, and starts earlier without the import.
if TYPE_CHECKING:
    from traceweir.streams.base.settings import Settings


@dataclass(frozen=True, slots=True)
class UserIds:
    """How scores and candidates show the ids of users."""

    plain: bool = False
    """Whether they have the ids as the agents send them."""
    key: SecretStr | None = None
    """The key of the hashes; None: a hash without a key."""

    @classmethod
    def of(cls, settings: Settings) -> UserIds:
        """Returns the rule of these settings."""
        return cls(settings.user_ids == "plain", settings.user_id_key)


HASHED = UserIds()
"""Hashes without a key."""


def with_user_ids(turns: Sequence[Turn], user_ids: UserIds) -> list[Turn]:
    """Returns the turns with user ids in the form that the rule demands."""
    if user_ids.plain:
        return list(turns)
    key = user_ids.key.get_secret_value().encode() if user_ids.key is not None else b""
    return [_hashed(turn, key) for turn in turns]


def _hashed(turn: Turn, key: bytes) -> Turn:
    known = turn.dimensions
    if known.user_id is None:
        return turn
    hidden = known.model_copy(update={"user_id": hashed_user_id(known.user_id, key)})
    return replace(turn, dimensions=hidden)
