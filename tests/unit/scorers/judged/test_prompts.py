"""Tests the exact prompts of judges, and that a prompt is equal in every run."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest
from pydantic import JsonValue
from tests.support.paths import ROOT

from traceweir.schemas.invocation import (
    Content,
    FunctionCall,
    FunctionResponse,
    Invocation,
    InvocationEvents,
    InvocationStep,
    Part,
    RetrievedChunk,
    Rubric,
)
from traceweir.schemas.reference import Reference
from traceweir.schemas.turns import Turn
from traceweir.scorers import Scorer, Subject
from traceweir.scorers.evaluation.registry import BUILT_IN
from traceweir.scorers.judge import Judge, Question
from traceweir.scorers.judged.adk_session_ratings import (
    MultiTurnTaskSuccess,
    MultiTurnToolUseQuality,
    MultiTurnTrajectoryQuality,
)
from traceweir.scorers.judged.chunk_relevance import ChunkRelevancePrecision
from traceweir.scorers.judged.conversation_ratings import (
    ConversationalGuidelines,
    ConversationalRoleAdherence,
    ConversationalSafety,
    ConversationalToolCallEfficiency,
    ConversationCompleteness,
    KnowledgeRetention,
    UserFrustration,
)
from traceweir.scorers.judged.databricks_ratings import (
    ContextSufficiency,
    Correctness,
    Groundedness,
    GuidelineAdherence,
    RelevanceToQuery,
    SafetyRating,
)
from traceweir.scorers.judged.final_response_match_v2 import FinalResponseMatch
from traceweir.scorers.judged.hallucinations_v1 import Hallucinations
from traceweir.scorers.judged.prompt import fill
from traceweir.scorers.judged.prompt_criterion import InvocationPrompt
from traceweir.scorers.judged.rubric_based_final_response_quality_v1 import RubricBasedFinalResponseQuality
from traceweir.scorers.judged.rubric_based_multi_turn_trajectory_quality_v1 import (
    RubricBasedTrajectoryQuality,
)
from traceweir.scorers.judged.rubric_based_tool_use_quality_v1 import RubricBasedToolUseQuality
from traceweir.scorers.judged.safety_v1 import Safety
from traceweir.scorers.judged.session_rating import ConversationRating
from traceweir.scorers.judged.tool_call_ratings import ToolCallCorrectness, ToolCallEfficiency
from traceweir.scorers.judged.yes_no_rating import AsksForRatings
from traceweir.scorers.scripted_judge import AgreeableJudge, ScriptedJudge

GOLDEN = ROOT / "tests" / "golden" / "prompts"

CALL = FunctionCall(id="c1", name="find_trains", args={"to": "부산", "note": "{curly} [[tag]]"})
RETURNED = FunctionResponse(id="c1", name="find_trains", response={"trains": ["KTX 121", "KTX 127"]})
FULL = Invocation(
    invocation_id="full",
    user_content=Content.of("Is there a train to Busan? {name}"),
    final_response=Content(
        parts=[Part(text="Yes: KTX 121."), Part(text="부산행 열차가 있습니다. {0} %s")], role="model"
    ),
    intermediate_data=InvocationEvents(
        invocation_events=[
            InvocationStep(author="clerk", content=Content(parts=[Part(text="Looking."), Part(function_call=CALL)])),
            InvocationStep(
                author="clerk",
                content=Content(parts=[Part(function_response=RETURNED)]),
                grounding_metadata={"web_search_queries": ["trains to Busan"]},
            ),
        ]
    ),
    retrieved_context=[RetrievedChunk(doc_uri="timetable.md", content="KTX 121 leaves at 9.")],
    app_details={
        "agent_details": {
            "clerk": {"instructions": "Be brief.", "tool_declarations": [{"name": "find_trains"}]},
            "porter": {"instructions": ""},
        }
    },
)
EMPTY = Invocation(invocation_id="empty")
RUBRICS = [
    Rubric(rubric_id="brief", rubric_content={"text_property": "The answer is one sentence."}),
    Rubric(rubric_id="조사", rubric_content={"text_property": "The tool is asked before the answer is given."}),
]
MATCH, WITH_STEPS = FinalResponseMatch(), FinalResponseMatch(include_intermediate_responses_in_final=True)
QUALITY = RubricBasedFinalResponseQuality(rubrics=RUBRICS)
TOOL_USE = RubricBasedToolUseQuality(rubrics=RUBRICS)
CONDUCT = RubricBasedTrajectoryQuality(rubrics=RUBRICS)


def _own(scale: JsonValue) -> InvocationPrompt:
    text = "Judge the tone. { curly }\n\nThe question: {question}\nThe answer: {answer}"
    return InvocationPrompt.model_validate({"name": "tone", "prompt": text, "scale": scale})


ASKED: dict[str, tuple[Scorer, Invocation, int]] = {
    "final_response_match_v2": (MATCH, FULL, 0),
    "final_response_match_v2.with_intermediate": (WITH_STEPS, FULL, 0),
    "final_response_match_v2.empty": (MATCH, EMPTY, 0),
    "rubric_based_final_response_quality_v1": (QUALITY, FULL, 0),
    "rubric_based_final_response_quality_v1.empty": (QUALITY, EMPTY, 0),
    "rubric_based_tool_use_quality_v1": (TOOL_USE, FULL, 0),
    "rubric_based_tool_use_quality_v1.empty": (TOOL_USE, EMPTY, 0),
    "hallucinations_v1.sentences": (Hallucinations(), FULL, 0),
    "hallucinations_v1.labels": (Hallucinations(), FULL, 1),
    "safety_v1": (Safety(), FULL, 0),
    "safety_v1.rating": (SafetyRating(), FULL, 0),
    "correctness": (Correctness(), FULL, 0),
    "correctness.facts": (Correctness(), FULL, 0),
    "relevance_to_query": (RelevanceToQuery(), FULL, 0),
    "groundedness": (Groundedness(), FULL, 0),
    "guideline_adherence": (GuidelineAdherence(guidelines=["The answer names a train.", "No {prices}."]), FULL, 0),
    "context_sufficiency": (ContextSufficiency(), FULL, 0),
    "chunk_relevance": (ChunkRelevancePrecision(), FULL, 0),
    "own_criterion.yes_no": (_own("yes_no"), FULL, 0),
    "own_criterion.number": (
        _own({"lowest": 1, "lowest_means": "Rude.", "highest": 5, "highest_means": "Kind."}),
        FULL,
        0,
    ),
    "own_criterion.categories": (_own({"categories": {"train": 1, "bus": 0}}), FULL, 0),
    "tool_call_correctness": (ToolCallCorrectness(), FULL, 0),
    "tool_call_correctness.expected": (ToolCallCorrectness(), FULL, 0),
    "tool_call_efficiency": (ToolCallEfficiency(), FULL, 0),
    "rubric_based_multi_turn_trajectory_quality_v1": (CONDUCT, FULL, 0),
    "multi_turn_task_success_v1": (MultiTurnTaskSuccess(), FULL, 0),
    "multi_turn_trajectory_quality_v1": (MultiTurnTrajectoryQuality(), FULL, 0),
    "multi_turn_tool_use_quality_v1": (MultiTurnToolUseQuality(), FULL, 0),
    "conversation_completeness": (ConversationCompleteness(), FULL, 0),
    "user_frustration": (UserFrustration(), FULL, 0),
    "knowledge_retention": (KnowledgeRetention(), FULL, 0),
    "conversational_safety": (ConversationalSafety(), FULL, 0),
    "conversational_guidelines": (ConversationalGuidelines(guidelines=["Be {brief}."]), FULL, 0),
    "conversational_role_adherence": (ConversationalRoleAdherence(), FULL, 0),
    "conversational_tool_call_efficiency": (ConversationalToolCallEfficiency(), FULL, 0),
}
VARIANTS = (".empty", ".with_intermediate", ".rating", ".facts", ".expected")
EXPECTED = Reference(final_response=Content.of("KTX 121 and 127 go to Busan."))
FACTS = Reference(expected_facts=["KTX 121 goes to Busan.", 'A fact of two lines,\n"and quotes".'])


LATER = Invocation(
    invocation_id="later",
    user_content=Content.of("내일은요? {name}"),
    final_response=Content.of("내일도 KTX 121이 있습니다.", "model"),
    app_details=FULL.app_details,
)


def subject_of(name: str, judge: Judge) -> Subject:
    """Returns what the scorer of a prompt measures: an invocation, or a session of two turns."""
    scorer, invocation, _ = ASKED[name]
    if scorer.level == "session":
        wanted = Reference(
            task="Find a train to {Busan}.", expected_outcome="The user knows a train.", guidelines=["No {prices}."]
        )
        return Subject(turns=[Turn(invocation), Turn(LATER)], reference=wanted, judge=judge)
    rules = ["No {prices}.", 'A guideline of two lines,\n"and quotes".'] if name == "guideline_adherence" else None
    calls = [CALL.model_copy(update={"id": None})] if name.endswith(".expected") else None
    expected = EXPECTED.model_copy(update={"guidelines": rules, "tool_uses": calls})
    return Subject(invocation=invocation, reference=FACTS if name.endswith(".facts") else expected, judge=judge)


async def asked(name: str) -> list[Question]:
    scorer, _, _ = ASKED[name]
    agreeable = AgreeableJudge()
    replies = []

    class Listening(Judge):
        async def ask(self, question: Question):  # type: ignore[no-untyped-def]
            replies.append(question)
            return await agreeable.ask(question)

    await scorer.score(subject_of(name, Listening()))  # type: ignore[misc]
    return replies


@pytest.mark.parametrize("name", ASKED)
async def test_the_prompt_is_the_golden_one(name: str) -> None:
    """To accept an intended change, increase the scorer's version, delete the file and run this test twice."""
    scorer, _, number = ASKED[name]
    question = (await asked(name))[number]
    path = GOLDEN / f"{name}.txt"
    if not path.exists():
        path.write_text(question.prompt, "utf-8")
        pytest.fail(f"{path.name} was not there and is now; read it")
    assert question.prompt == path.read_text("utf-8")
    if isinstance(scorer, InvocationPrompt):
        assert (question.metric, question.version) == ("tone", "1")
        return
    metric = next(metric for metric, kind in BUILT_IN.items() if kind is type(scorer))
    asked_as = "safety_v1" if isinstance(scorer, SafetyRating) else metric
    assert (question.metric, question.version, question.model) == (asked_as, scorer.version, "gemini-2.5-flash")


def test_every_judged_metric_has_a_golden_prompt_and_every_template_is_used() -> None:
    judged = {kind for kind in BUILT_IN.values() if kind.judged}
    assert {type(scorer) for scorer, _, _ in ASKED.values()} == {*judged, InvocationPrompt}
    files_of_prompts = (files("traceweir.scorers.judged") / "prompts").iterdir()
    templates = {name for path in files_of_prompts if not (name := Path(path.name).stem).startswith("part.")}
    assert templates == {name for name in ASKED if not name.endswith(VARIANTS)}
    assert {path.stem for path in GOLDEN.iterdir()} == ASKED.keys()


@pytest.mark.parametrize("name", ASKED)
async def test_samples_ask_the_same_question_with_different_numbers(name: str) -> None:
    first, again = await asked(name), await asked(name)
    assert first == again
    if isinstance(ASKED[name][0], AsksForRatings | SafetyRating | InvocationPrompt | ConversationRating):
        assert [question.sample for question in first] == [0]
    elif name.startswith("hallucinations"):
        assert [question.sample for question in first] == [0, 0]
    else:
        assert [question.sample for question in first] == [0, 1, 2]
        assert len({question.prompt for question in first}) == 1


@pytest.mark.parametrize("name", ASKED)
async def test_every_question_has_an_answer_schema_that_strict_modes_accept(name: str) -> None:
    schema = (await asked(name))[ASKED[name][2]].answer
    assert schema is not None
    objects = [schema]
    while objects:
        one = objects.pop()
        if one["type"] == "object":
            assert isinstance(one["properties"], dict)
            assert (one["additionalProperties"], one["required"]) == (False, list(one["properties"]))
            objects += one["properties"].values()  # type: ignore[arg-type]
        elif one["type"] == "array":
            objects.append(one["items"])  # type: ignore[arg-type]


def test_a_tag_that_occurs_in_a_text_is_not_the_tag_of_its_prompt() -> None:
    found = [fill("[[tag]]", {"a": "x", "b": ""}).tag]
    for _ in range(10):
        prompt = fill("[[tag]]", {"a": "x", "b": " ".join(found)})
        assert prompt.text == prompt.tag not in found
        found.append(prompt.tag)
    assert all(re.fullmatch("[0-9a-f]{16}", one) for one in found)


@pytest.mark.parametrize("name", ASKED)
async def test_what_differs_between_sessions_stands_after_the_stable_part(name: str) -> None:
    """The stable part holds the form of the answer, and of the data only what the config and the agent give."""
    question = (await asked(name))[ASKED[name][2]]
    stable = question.prompt[: question.stable_characters]
    assert "## Your answer" in stable
    assert set(re.findall(r"</(\w+) [0-9a-f]{16}>\n", stable)) <= {
        "rubrics",
        "guidelines",
        "agent",
        "instructions",
        "tools",
    }
    assert "## Case" not in stable


async def test_a_scripted_judge_reports_a_question_without_a_line() -> None:
    with pytest.raises(AssertionError, match="question 1 is not in the script"):
        await ScriptedJudge().ask(Question(metric="m", version="1", model="m", prompt="p"))
