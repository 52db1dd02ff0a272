"""Defines PushedConfig: an evaluation config on the topic `configs`, with its version and who pushed it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from traceweir.schemas.base import JsonObject, NonEmpty, Timestamp, WireModel

ENVELOPE = 1
"""The version of the envelope that this version of Traceweir writes, and the newest that it reads."""
MAX_COMMENT_CHARS = 1_000


class PushedConfig(WireModel):
    """An evaluation config on the topic `configs`, or with a null config the withdrawal of one.

    The key of the record says what the record is. `travel@production` (or `travel`, `*@production`, `*`) is the config
    that is in effect for these sessions. `version:travel:7` is the seventh version of the config with the key `travel`.
    `digest:<digest>` is the config of all scores with this `config_digest`; a worker writes this record, with the version
    0, for its config file and for other configs that lack it. The topic is compacted, so that the last record of each key stays.
    """

    envelope: Annotated[int, Field(ge=1)]
    """Version of this format. A reader does not use a record with a newer version than its own."""
    selector: NonEmpty
    """The sessions that the config is for: `app`, `app@environment`, `*@environment` or `*`, percent-encoded; `*` if a
    worker wrote the record."""
    version: Annotated[int, Field(ge=0)]
    """Number of the version among those of the same selector, from 1; 0 for what a worker wrote, which nobody pushed."""
    digest: str | None
    """The `config_digest` of its scores, by the version of Traceweir that pushed it; null for a withdrawal."""
    config: JsonObject | None
    """The document, as in a config file; null: the config was withdrawn, or a worker has none and measures the default criteria."""
    pushed_at: Timestamp
    """When the version was pushed, or a worker wrote the record, by the clock of the machine that did it."""
    pushed_by: str | None = None
    """Who pushed the version, as the command was told; null if unknown."""
    comment: Annotated[str, Field(max_length=MAX_COMMENT_CHARS)] | None = None
    """Why the version was pushed; null if no reason was given."""
    traceweir: str | None = None
    """The version of Traceweir that wrote the record."""

    def wire(self) -> bytes:
        """Returns the record's value."""
        return self.model_dump_json().encode()
