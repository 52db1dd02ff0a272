"""A made-up next format of rows, in which the stage score has another name for one of its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from traceweir.streams.base.stages.base import Cut, Read, Rows, Stage, StageSpec
from traceweir.streams.worker.runtime.row_formats import FORMAT, RowFormats

FORMER, NEXT = b"d", b"done"
"""The names of the row in both formats."""


def _older(rows: Rows) -> Rows:
    names = {b"score/" + NEXT: b"score/" + FORMER}
    return [(names.get(key, key), row) for key, row in rows if key != b"score/" + FORMER]


NEXT_FORMATS = RowFormats(FORMAT + 1, {FORMAT + 1: _older})
"""The formats of a version that writes the next format."""


def of_next_version(spec: StageSpec) -> StageSpec:
    """Returns a stage of the next version: it cuts the row under its new name, and deletes the former one."""

    def new(partition: int, read: Read, changed: Callable[[], None]) -> Stage:
        stage: Any = spec.new(partition, read, changed)
        stage.load, stage.cut = partial(_load, stage.load), partial(_cut, stage.cut)
        renamed: Stage = stage
        return renamed

    return replace(spec, new=new) if spec.name == "score" else spec


def _load(load: Callable[[Mapping[bytes, bytes]], None], rows: Mapping[bytes, bytes]) -> None:
    found = {key: row for key, row in rows.items() if key != NEXT}
    load(found | ({FORMER: rows[NEXT]} if NEXT in rows else {}))


def _cut(cut: Callable[[], Cut]) -> Cut:
    found = cut()
    renamed = [(NEXT, row) for key, row in found.rows if key == FORMER]
    return found._replace(
        rows=[*([(FORMER, None)] if renamed else []), *renamed, *(r for r in found.rows if r[0] != FORMER)]
    )
