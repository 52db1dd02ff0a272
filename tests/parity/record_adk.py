"""Records the results of Google ADK for the scripted judges of these cases in `data/adk_judge_oracle.json`.

The recorded rows can be checked with this script:

    python3 -m venv adk && adk/bin/pip install 'google-adk[eval]==2.13.0'
    adk/bin/python tests/parity/record_adk.py            # compares; --write writes the file anew

The file contains these inputs and the resulting numbers, and no code of ADK. The script calls no model and sends no data.
Metrics that need a service of Google (the other multi-turn metrics) or a user simulator are not included.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "data" / "adk_judge_oracle.json"

CRITIQUES = [
    '{"reasoning":"r","is_the_agent_response_valid": "valid"}',
    '{"reasoning":"r","is_the_agent_response_valid": "invalid"}',
    '{"reasoning":"r","is_the_agent_response_valid": "Valid"}',
    '{"reasoning":"r","is_the_agent_response_valid": "VALID"}',
    '{"reasoning":"r","is_the_agent_response_valid": "true"}',
    '{"is_the_agent_response_valid": true}',
    '{"is_the_agent_response_valid": false,}',
    '{"reasoning":"r","is_the_agent_response_valid": "partially_valid"}',
    '{"reasoning":"r","is_the_agent_response_valid": "partially valid"}',
    '{"reasoning":"r","is_the_agent_response_valid": "partially"}',
    '{"reasoning":"r","is_the_agent_response_valid": "almost"}',
    '{"reasoning":"r","is_the_agent_response_valid": "maybe"}',
    '{"is_the_agent_response_valid": ["valid"]}',
    '{"is_the_agent_response_valid": null}',
    '{"is_the_agent_response_valid": 1}',
    '{"is_the_agent_response_invalid": "true"}',
    '{"is_the_agent_response_invalid": "false"}',
    '{"is_the_agent_response_invalid": "valid"}',
    '{"is_the_agent_response_valid": "maybe", "is_the_agent_response_invalid": "false"}',
    '```json\n{"reasoning":"x",\n"is_the_agent_response_valid": [valid]\n}\n```',
    '```json\n{"reasoning":"x",\n"is_the_agent_response_valid": "valid"\n}\n```',
    'My answer:\n{"reasoning": "x", "is_the_agent_response_valid": "invalid"}',
    '{"reasoning": "he says \\"is_the_agent_response_valid\\": \\"valid\\"", "is_the_agent_response_valid": "invalid"}',
    '{"reasoning": "r",\n"is_the_agent_response_valid":\n\n [\n "valid" \n]\n}',
    "valid",
    "",
    '{"is_the_agent_response_valid": "valid"',
]

RUBRICS = [("r1", "Is concise."), ("r2", "Uses “smart” quotes")]
RUBRIC_REPLIES = [
    (
        "ID: r1\nProperty: Is concise.\nEvidence: e\nRationale: because\nVerdict: yes\n"
        "ID: r2\nProperty: x\nEvidence: e\nRationale: b\nVerdict: no\n"
    ),
    (
        "Property: Is concise.\nEvidence: e\nRationale: because\nVerdict: Yes.\n"
        'Property: **uses "smart"  quotes**\nEvidence: e\nRationale: b\nVerdict: no\n'
    ),
    "Property: Is concise.\nVerdict: yes\n",
    "Property: Is concise.\nEvidence: e\nRationale: because\nVerdict: not applicable\n",
    "Property: Is concise.\nEvidence: e\nRationale: because\nVerdict: unknown\n",
    "Property: Is concise.\nEvidence: e\nRationale: because\nVerdict: maybe\n",
    "**Property:** Is concise.\nRationale: b\nVerdict: yes\n",
    "Property: Is concise.\nEvidence: e\nRationale: because\nVerdict: yes\nVerdict: no\n",
    "Rationale: one\nProperty: Is concise.\nVerdict: no, but yes",
    "Property: Is concise.\nRationale: b\nVerdict: yes\nID: r2\n\n  Property: nobody's\nRationale: b\nVerdict: no",
    "ID: nobody's\nProperty: Is concise.\nRationale: b\nVerdict: yes",
    "Property: something else\nRationale: b\nVerdict: yes",
    "ID: r1\nID: r2\nProperty: Is concise.\nRationale: b\nVerdict: yes",
    "ID: r1\r\nProperty: Is concise.\r\nRationale: b\r\nVerdict: yes\r\n",
    "",
]
NORMALISED = ["**Uses “smart” quotes** ", "  Is\n\tconcise. ", "> `a`", "• ＡＢＣ—“x”", "- 서울  시 -"]

SENTENCE_REPLIES = [
    "<sentence>One.</sentence>\n<sentence> Two. </sentence>",
    "<sentence>One\ntwo.</sentence><sentence></sentence>",
    "<sentence>One <sentence>two.</sentence> three</sentence>",
    "<sentence>One",
    "none",
    "",
]


def block(label: str, sentence: str = "s", **other: str) -> str:
    fields = {"sentence": sentence, "label": label, "rationale": "r", "supporting_excerpt": "null"}
    fields |= {"contradicting_excerpt": "null", **other}
    return "\n".join(f"{name}: {text}" for name, text in fields.items())


LABEL_REPLIES = [
    block("supported") + "\n\n" + block("Unsupported", "t", supporting_excerpt="x\ny"),
    block("supported").upper(),
    block("`supported`"),
    block(" disputed "),
    block("supported").replace("\nrationale: r", ""),
    block("supported", "a\nlabel: unsupported"),
    "Here you are: " + block("contradictory") + "\n" + block("not_applicable", contradicting_excerpt="sentence: b"),
    "sentence: one\nsentence: two\nlabel: supported\nrationale: r\nsupporting_excerpt: n\ncontradicting_excerpt: null",
    "",
]


def reply(*verdicts: tuple[str, str]) -> str:
    return "\n".join(
        f"ID: {name}\nProperty: {dict(RUBRICS).get(name, 'x')}\nEvidence: e\nRationale: why {word}\nVerdict: {word}"
        for name, word in verdicts
    )


def verdict(word: str) -> str:
    return json.dumps({"reasoning": f"why {word}", "is_the_agent_response_valid": word})


VALID, INVALID, JUNK, RAISES = verdict("valid"), verdict("invalid"), "hm", {"raises": "no answer"}
YY, YN, NY = (reply(("r1", one), ("r2", two)) for one, two in (("yes", "yes"), ("yes", "no"), ("no", "yes")))
NN = reply(("r1", "no"), ("r2", "no"))


def rubric(name: str, text: str, **other: str) -> dict[str, Any]:
    return {"rubric_id": name, "rubric_content": {"text_property": text}, **other}


def marked_invocation(number: int, text: str, **other: Any) -> dict[str, Any]:
    """Returns an invocation with a mark that identifies it in every prompt."""
    mark = f"[inv-{number}]"
    return {
        "invocation_id": f"inv-{number}",
        "user_content": {"parts": [{"text": f"q {mark}"}], "role": "user"},
        "final_response": {"parts": [{"text": text and f"{text} {mark}"}], "role": "model"},
        **other,
    }


def events(number: int) -> dict[str, Any]:
    parts = [
        {"text": f"mid [inv-{number}]."},
        {"function_call": {"name": "t1", "args": {"a": 1}}},
        {"function_response": {"name": "t1", "response": {"r": "서울"}}},
    ]
    return {"invocation_events": [{"author": "agent", "content": {"parts": parts, "role": "model"}}]}


def match(name: str, *replies: list[Any]) -> dict[str, Any]:
    turns = [marked_invocation(number, "fin") for number in range(len(replies))]
    options = {"num_samples": len(replies[0])}
    criterion = {"threshold": 0.5, "judge_model_options": options}
    return {
        "name": name,
        "metric": "final_response_match_v2",
        "criterion": criterion,
        "actual": turns,
        "expected": turns,
        "replies": replies,
    }


def rubrics(name: str, *replies: list[Any], given: Any = RUBRICS, metric: str = "final_response", **own: Any) -> Any:
    criterion = {
        "threshold": 0.8,
        "judge_model_options": {"num_samples": len(replies[0])},
        "rubrics": [rubric(*one) for one in given],
    }
    return {
        "name": name,
        "metric": f"rubric_based_{metric}_quality_v1",
        "criterion": criterion,
        "actual": [marked_invocation(number, "fin", **own) for number in range(len(replies))],
        "expected": None,
        "replies": replies,
    }


def trajectories(
    name: str, replies: list[Any], *, turns: int = 2, given: Any = RUBRICS, own: Any = None, **last: Any
) -> dict[str, Any]:
    """Returns a case of the multi-turn metric, whose judge is asked about the last invocation only.

    Args:
        name: The name of the case.
        replies: The replies of the judge.
        turns: Number of invocations.
        given: The rubrics of the criterion.
        own: The rubrics of all invocations but the last.
        last: Other fields of the last invocation.
    """
    earlier = {"rubrics": own} if own else {}
    return {
        "name": name,
        "metric": "rubric_based_multi_turn_trajectory_quality_v1",
        "criterion": {
            "threshold": 0.8,
            "judge_model_options": {"num_samples": len(replies)},
            "rubrics": [rubric(*one) for one in given],
        },
        "actual": [
            *(marked_invocation(number, "fin", **earlier) for number in range(turns - 1)),
            marked_invocation(turns - 1, "fin", **last),
        ],
        "expected": None,
        "replies": [*[[]] * (turns - 1), replies],
    }


def hallucinations(name: str, *replies: list[Any], intermediate: bool = False, text: str = "fin", **own: Any) -> Any:
    criterion = {"threshold": 0.8, "evaluate_intermediate_nl_responses": intermediate}
    return {
        "name": name,
        "metric": "hallucinations_v1",
        "criterion": criterion,
        "actual": [marked_invocation(number, text, **own) for number in range(len(replies))],
        "expected": None,
        "replies": replies,
    }


ONE = "<sentence>fin.</sentence>"
FIVE = "\n\n".join(
    block(label, f"s{number}")
    for number, label in enumerate(["supported", "not_applicable", "unsupported", "contradictory", "disputed"])
)
OF_FIVE = "".join(f"<sentence>s{number}</sentence>" for number in range(5))
TYPED = [
    rubric("r8", "fr only", type="FINAL_RESPONSE_QUALITY"),
    rubric("r7", "tool only", type="TOOL_USE_QUALITY"),
    rubric("r9", "untyped"),
]
TRAJECTORY = [rubric("r6", "trajectory only", type="TRAJECTORY_QUALITY")]
STEPS = "\n".join(
    f"STEP 1: {text}\nSTEP 4: It is seen in turn 1.\nSTEP 5: yes\nID: {name}\nProperty: {text}\nRationale: b\nVerdict: yes\n"
    for name, text in RUBRICS
)
CASES = [
    match("3 valid 2 invalid", [VALID, INVALID, VALID, INVALID, VALID]),
    match("2/2 tie n=4", [VALID, VALID, INVALID, INVALID]),
    match("1 valid, 4 unparsable", [JUNK, JUNK, VALID, JUNK, JUNK]),
    match("1 valid 1 invalid 3 unparsable", [JUNK, VALID, JUNK, INVALID, JUNK]),
    match("all unparsable", [JUNK] * 5),
    match("one sample raises", [RAISES, VALID, VALID, VALID, VALID]),
    match("2 inv: valid ; all unparsable", [VALID] * 3, [JUNK] * 3),
    match("2 inv valid;invalid", [VALID] * 3, [INVALID] * 3),
    match("content None", [None] * 2),
    match("2 inv: raises ; invalid", [RAISES], [INVALID]),
    match("2 valid 3 invalid", [VALID, INVALID, VALID, INVALID, INVALID]),
    rubrics("1 sample yes/no", [YN]),
    rubrics("3 samples r1 y,y,n r2 n,n,y", [YN, YN, NY]),
    rubrics("2 samples tie", [YY, NN]),
    rubrics("missing r2 in the reply", [reply(("r1", "yes"))]),
    rubrics("unparsable", [JUNK]),
    rubrics("r2 verdict none", [reply(("r1", "yes"), ("r2", "maybe"))]),
    rubrics("2 inv: r1 y,r2 y ; r1 n only", [YY], [reply(("r1", "no"))]),
    rubrics("no rubrics", [YN], given=[]),
    rubrics(
        "per-invocation rubrics in FINAL_RESPONSE",
        [reply(("r1", "yes"), ("r2", "yes"), ("r8", "no"), ("r7", "no"))],
        rubrics=TYPED,
    ),
    rubrics("per-invocation rubrics in TOOL_USE", [reply(("r7", "no"))], metric="tool_use", given=[], rubrics=TYPED),
    rubrics("dup rubric id", [YN], rubrics=[rubric("r1", "other", type="FINAL_RESPONSE_QUALITY")]),
    rubrics("tool use: 3 samples", [YN, NN, YY], metric="tool_use", intermediate_data=events(0)),
    rubrics("one sample raises, of rubrics", [YN, RAISES, YN]),
    trajectories("trajectory: 1 sample yes/no", [YN]),
    trajectories("trajectory: all met", [YY]),
    trajectories("trajectory: one turn", [NY], turns=1),
    trajectories("trajectory: 5 turns, 3 samples r1 y,y,n r2 n,n,y", [YN, YN, NY], turns=5),
    trajectories("trajectory: 2 samples tie", [YY, NN]),
    trajectories("trajectory: missing r2 in the reply", [reply(("r1", "yes"))]),
    trajectories("trajectory: r2 only in the second reply", [reply(("r1", "yes")), YN]),
    trajectories("trajectory: unparsable", [JUNK, JUNK]),
    trajectories("trajectory: content None", [None]),
    trajectories("trajectory: r2 verdict none", [reply(("r1", "yes"), ("r2", "maybe"))]),
    trajectories("trajectory: steps before each block", [STEPS]),
    trajectories("trajectory: the step holds a verdict", [STEPS.replace("STEP 5: yes", "STEP 5: Verdict: yes")]),
    trajectories("trajectory: one sample raises", [YN, RAISES, YN]),
    trajectories("trajectory: no rubrics", [YN], given=[]),
    trajectories("trajectory: rubrics of an earlier invocation only", [YN], given=[], own=TRAJECTORY),
    trajectories("trajectory: rubrics of an earlier invocation do not count", [YN], own=TRAJECTORY),
    trajectories(
        "trajectory: rubrics of the last invocation",
        [reply(("r1", "yes"), ("r2", "yes"), ("r6", "no"), ("r7", "no"))],
        rubrics=[*TYPED, *TRAJECTORY],
    ),
    trajectories("trajectory: dup rubric id", [YN], rubrics=[rubric("r1", "other", type="TRAJECTORY_QUALITY")]),
    trajectories("trajectory: with events", [YY], intermediate_data=events(1)),
    trajectories("trajectory: failed without an answer", [NN], final_response=None),
    hallucinations("sup,na,unsup,contra,disp", [OF_FIVE, FIVE]),
    hallucinations("Supported (caps)", [ONE, block("Supported")]),
    hallucinations("`supported` backticks", [ONE, block("`supported`")]),
    hallucinations("unknown label + supported", [ONE, block("perhaps") + "\n\n" + block("supported")]),
    hallucinations("no sentences", ["none"]),
    hallucinations("validator garbage", [ONE, "garbage"]),
    hallucinations("validator fewer than sentences", [OF_FIVE, block("supported", "s0")]),
    hallucinations("segmenter raises", [RAISES]),
    hallucinations("validator raises", [ONE, RAISES]),
    hallucinations("empty final response", [], text=""),
    hallucinations("2 inv: 1 of 3 ; 2 of 2", [OF_FIVE, FIVE], [ONE, block("supported")]),
    hallucinations(
        "intermediate on: mid 0, fin 1",
        ["<sentence>mid.</sentence>", block("unsupported"), ONE, block("supported")],
        intermediate=True,
        intermediate_data=events(0),
    ),
    hallucinations(
        "intermediate on, segmenter raises for mid",
        [RAISES, ONE, block("supported")],
        intermediate=True,
        intermediate_data=events(0),
    ),
    hallucinations("intermediate off", [ONE, block("supported")], intermediate_data=events(0)),
]


OWN_RUBRIC = re.compile(r"\*  \[id: r\d\] ")


def record() -> dict[str, Any]:
    """Returns the rows with the results of the installed google-adk."""
    from google.adk.evaluation import final_response_match_v2 as match_v2
    from google.adk.evaluation import hallucinations_v1, rubric_based_evaluator

    parse = rubric_based_evaluator.DefaultAutoRaterResponseParser().parse
    logging.disable(logging.CRITICAL)
    return {
        "google-adk": __import__("google.adk.version", fromlist=["__version__"]).__version__,
        "critiques": [[text, match_v2._parse_critique(text).name] for text in CRITIQUES],
        "rubric_replies": [
            [text, [[one.rubric_id, one.property_text, one.score] for one in parse(text)]] for text in RUBRIC_REPLIES
        ],
        "normalised": [[text, rubric_based_evaluator._normalize_text(text)] for text in NORMALISED],
        "sentences": [[text, hallucinations_v1._parse_sentences(text)] for text in SENTENCE_REPLIES],
        "labels": [[text, hallucinations_v1._parse_validation_results(text)] for text in LABEL_REPLIES],
        "cases": [case | asyncio.run(outcome_of(case)) for case in CASES],
        "context": context(),
    }


def evaluator_of(case: dict[str, Any], judge: Any = None) -> Any:
    from google.adk.evaluation import eval_metrics
    from google.adk.evaluation.metric_evaluator_registry import DEFAULT_METRIC_EVALUATOR_REGISTRY

    rubric_based = case["metric"].startswith("rubric")
    kind = eval_metrics.RubricsBasedCriterion if rubric_based else eval_metrics.LlmAsAJudgeCriterion
    kind = eval_metrics.HallucinationsCriterion if case["metric"].startswith("hallu") else kind
    metric = eval_metrics.EvalMetric(
        metric_name=case["metric"],
        threshold=case["criterion"]["threshold"],
        criterion=kind.model_validate(case["criterion"]),
    )
    evaluator = DEFAULT_METRIC_EVALUATOR_REGISTRY.get_evaluator(metric)
    evaluator._judge_model = judge
    return evaluator


async def outcome_of(case: dict[str, Any]) -> dict[str, Any]:
    from google.adk.evaluation.eval_case import Invocation
    from google.adk.models.llm_response import LlmResponse
    from google.genai import types

    script = iter([line for lines in case["replies"] for line in lines])
    prompts: list[str] = []

    class Judge:
        async def generate_content_async(self, request: Any) -> Any:
            prompts.append(request.contents[0].parts[0].text)
            line = next(script)
            if isinstance(line, dict):
                raise RuntimeError(line["raises"])  # noqa: TRY004  # simulates a provider's failure
            content = None if line is None else types.Content(parts=[types.Part(text=line)])
            yield LlmResponse(content=content)

    actual = [Invocation.model_validate(one) for one in case["actual"]]
    expected = case["expected"] and [Invocation.model_validate(one) for one in case["expected"]]
    try:
        found = await evaluator_of(case, Judge()).evaluate_invocations(actual, expected)
    except ValueError as error:
        return {"outcome": {"raises": str(error)}, "listed": []}

    def scores(given: Any) -> list[list[Any]]:
        return [[one.rubric_id, one.score] for one in given or []]

    return {
        "outcome": {
            "value": found.overall_score,
            "status": found.overall_eval_status.name,
            "rubrics": scores(found.overall_rubric_scores),
            "invocations": [
                [one.score, one.eval_status.name, scores(one.rubric_scores)] for one in found.per_invocation_results
            ],
            "questions": len(prompts),
        },
        "listed": [line for text in prompts[:1] for line in listed_rubrics(text)],
    }


def listed_rubrics(prompt: str) -> list[str]:
    """Returns the rubrics in a prompt, each as a line; the multi-turn metric lists them as JSON."""
    properties = re.search(r"<properties>\n(\[.*\])\n</properties>", prompt, re.DOTALL)
    if properties is None:
        return [line for line in prompt.splitlines() if OWN_RUBRIC.match(line)]
    return [f"*  [id: {one['id']}] {one['property']}" for one in json.loads(properties[1])]


def context() -> dict[str, Any]:
    """Returns the contexts that ADK's validator builds from events."""
    from google.adk.evaluation.eval_case import Invocation

    agent = {"name": "agent", "instructions": "Be kind.", "tool_declarations": []}
    grounded = events(0)
    grounded["invocation_events"][0]["grounding_metadata"] = {"web_search_queries": ["서울"]}
    shown = []
    given: list[dict[str, Any]] = [
        {"intermediate_data": events(0)},
        {"intermediate_data": events(0), "app_details": {"agent_details": {"agent": agent}}},
        {"intermediate_data": grounded},
    ]
    for own in given:
        invocation = marked_invocation(0, "fin", **own)
        made = hallucinations("context", [], **own)
        steps = evaluator_of(made)._get_steps_to_evaluate(Invocation.model_validate(invocation))
        shown.append([invocation, steps[-1].context])
    return {"of_final": shown}


def main() -> int:
    """Compares the results with the file, or writes the file."""
    text = json.dumps(record(), ensure_ascii=False, indent=1) + "\n"
    if "--write" in sys.argv:
        FILE.write_text(text, "utf-8")
        return 0
    same = json.loads(text) == json.loads(FILE.read_text("utf-8"))
    sys.stdout.write(f"{FILE.name}: {'the same' if same else 'differs'}\n")
    return int(not same)


if __name__ == "__main__":
    sys.exit(main())
