"""What groups of parameters mean is named by a type, so that no signature is a list of settings."""

from __future__ import annotations

import inspect

import pytest
from traceweir.client import Recorder

from traceweir.streams.pipeline.score.stage import ScoreStage
from traceweir.streams.scoring.sessions.session_scoring import SessionScoring


@pytest.mark.parametrize("built", [Recorder, ScoreStage, SessionScoring])
def test_it_has_at_most_eight_parameters(built: type) -> None:
    assert len(inspect.signature(built).parameters) <= 8
