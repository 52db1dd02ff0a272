"""Serves what labels say about judges as metrics for Prometheus."""

from __future__ import annotations

from fastapi import APIRouter, Response

from traceweir.streams.board.dashboard.context import Serving
from traceweir.streams.worker.telemetry.prometheus import CONTENT_TYPE, exposition
from traceweir.streams.worker.telemetry.tool_catalogue import TRUST

router = APIRouter()


@router.get(
    "/prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "The metrics"}},
)
async def read_prometheus(dashboard: Serving) -> Response:
    """How far judges agree with people, in the text format of Prometheus, as it was last computed: every five minutes."""
    return Response(exposition(dashboard.options.trust_points(), TRUST), media_type=CONTENT_TYPE)
