"""Each shape of an answer has the verdict or the cause that it should have, and is asked for again only where that helps."""

from __future__ import annotations

import pytest
from tests.support.judged import judging
from tests.support.openai_server import openai_server
from tests.unit.streams.scoring.judges.answer_shapes import Shape, shapes

from traceweir.schemas.invocation import Content, Invocation
from traceweir.schemas.turns import Turn
from traceweir.scorers.judged.base import subject_at_end
from traceweir.scorers.judged.safety_v1 import Safety
from traceweir.streams.lab.judge_check import measured_case

# Loading litellm takes seconds, so one process runs these tests.
pytestmark = [pytest.mark.xdist_group("litellm"), pytest.mark.slow]

SHAPES = list(shapes())
CONFIG = {"repairs": 1, "retries": {"attempts": 2, "initial_s": 0.001, "max_s": 0.001, "jitter_s": 0}}
TURN = Turn(
    Invocation(invocation_id="i", user_content=Content.of("How?"), final_response=Content.of("Like this.", "model")),
    None,
)


def test_the_shapes_are_many_and_have_names() -> None:
    assert len({shape.name for shape in SHAPES}) == len(SHAPES) >= 73


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
async def test_each_shape_of_an_answer_counts_as_it_should(shape: Shape) -> None:
    scorer = Safety(judge_model_options={"judge_model": "openai/stub", "num_samples": 1})
    async with openai_server(default=lambda body: shape.said) as server:
        judge = judging(server.url, config=CONFIG).session()
        measured, cause, problem = await measured_case(scorer, subject_at_end(scorer, [TURN], judge))
    outcome = cause if measured is None else "yes" if measured.value else "no"
    assert (outcome, len(server.asked)) == (shape.outcome, shape.asked), problem
