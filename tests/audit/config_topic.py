"""Reads what the topic `configs` said, one state after the other. Shares no code with the worker."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

from tests.audit.committed import Document, Row

FILE = "the config file"
"""Stands for the digests of the config files of workers: two of them can differ."""
ALL = "*"
State = Mapping[str, str]
"""The digest of the config in effect, by selector."""


class ConfigTopic:
    """What the topic says, in the order of its records.

    Args:
        rows: The committed records of the topic.
        refused: The key and value of each record that is never in effect.
        files: The digests of the config files of the workers; None: nothing was pushed, so that all digests are theirs.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        refused: Collection[tuple[bytes | None, bytes | None]] = (),
        files: Collection[str] | None = None,
    ) -> None:
        self.files = files
        self.documents: dict[str, Document] = {}
        """The config of each digest that was in effect."""
        self.states: list[State] = [{}]
        """What was in effect, one after the other; at first nothing."""
        state: dict[str, str] = {}
        for row in sorted(rows, key=lambda row: row.offset):
            key = (row.key or b"").decode(errors="replace")
            if row.partition or (row.key, row.value) in refused or key.startswith(("version:", "digest:")):
                continue
            if row.value is None:
                state.pop(key, None)
            else:
                state[key] = digest = json.loads(row.value)["digest"]
                self.documents[digest] = json.loads(row.value)["config"]
            self.states.append(dict(state))

    def name(self, digest: str) -> str:
        """Returns the digest, or `FILE` for that of a config file."""
        return FILE if self.files is None or digest in self.files else digest

    def chosen(self, state: State, session: Document) -> str:
        """Returns the digest of the config that a session has while a state is in effect, as `name` does.

        A pushed config can equal a config file.
        """
        told = {
            name: event[name] for event in session["events"] for name in ("app_name", "environment") if name in event
        }
        app, environment = told.get("app_name"), told.get("environment")
        selectors = [
            *([f"{app}@{environment}"] if app and environment else ()),
            *([app] if app else ()),
            *([f"{ALL}@{environment}"] if environment else ()),
            ALL,
        ]
        return self.name(next((state[each] for each in selectors if each in state), FILE))
