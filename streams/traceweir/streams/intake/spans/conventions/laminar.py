"""Laminar: ids and tags that its SDK writes on the spans of other conventions."""

from __future__ import annotations

from traceweir.streams.intake.spans.conventions.convention import Convention

LAMINAR = Convention(
    name="Laminar",
    sessions=("lmnr.association.properties.session_id",),
    users=("lmnr.association.properties.user_id",),
    tags=("lmnr.association.properties.tags",),
)
