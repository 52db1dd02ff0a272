"""Answers what anchors say about judges."""

from __future__ import annotations

from typing import Any

import orjson
from fastapi import APIRouter, Response

from traceweir.streams.board.dashboard.anchor_look import AnchorStanding
from traceweir.streams.board.dashboard.context import Serving

router = APIRouter()


@router.get("/anchors", response_model=AnchorStanding)
async def read_anchors(dashboard: Serving) -> Any:
    """The judge of each criterion with anchors, as it was last read: the topics are read once a minute while somebody asks."""
    # It has names and figures, and no texts of agents that could be hidden.
    document = dashboard.options.anchors().model_dump(mode="json", by_alias=True)
    return Response(orjson.dumps(document), media_type="application/json")
