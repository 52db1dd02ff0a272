"""Tests how the names that a recogniser finds are redacted, with a recogniser that knows two names."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import JsonValue
from tests.support.redaction.known_names import KnownNames
from tests.support.scoring import make_trace, trace_document

from traceweir.schemas.trace import ReasoningTrace
from traceweir.scorers import ConfigError, read_plan
from traceweir.scorers.evaluation.publication import publication
from traceweir.scorers.redaction.entities import NotSearchedError, limited
from traceweir.scorers.redaction.redaction import redact, redact_text
from traceweir.scorers.redaction.trace_document import redact_trace

PLAN = read_plan({"gate": {"presidio": {"model": "en_core_web_sm"}}})
find = KnownNames().find


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("Kim Minsu flies to Seoul.", "[REDACTED:person] flies to [REDACTED:location]."),
        ("Kim Minsu: kim@example.com", "[REDACTED:person]: [REDACTED:email]"),
        ("EMP-4711 is Kim Minsu", "[REDACTED:employee] is [REDACTED:person]"),
        ("password=Kim Minsu", "password=[REDACTED:password]"),
        ("[REDACTED:email] Kim Minsu", "[REDACTED:email] [REDACTED:person]"),
        ("nobody", "nobody"),
    ],
)
def test_names_are_redacted_beside_what_the_rules_find(text: str, redacted: str) -> None:
    assert redact_text(text, {"employee": "EMP-[0-9]+"}, find) == redacted


def test_a_name_within_a_hit_of_the_rules_has_the_kind_of_the_rule() -> None:
    assert redact_text("open /home/Seoul/plan.md", find_entities=find) == "open [REDACTED:filepath]"


def test_names_in_values_are_redacted_and_names_in_keys_stay() -> None:
    assert redact({"Seoul": ["to Seoul", {"who": "Kim Minsu"}]}, find_entities=find) == {
        "Seoul": ["to [REDACTED:location]", {"who": "[REDACTED:person]"}]
    }


def test_in_a_trace_names_are_redacted_in_texts_and_not_in_labels_ids_and_constants() -> None:
    name = "Kim Minsu"
    document = trace_document(
        id=f"kp:trace:{name}",
        source_skill=name,
        metadata={"agent_id": name, "framework": name, "task_domain": name, "validated_by": [name]},
        task={"objective": name, "input_schema": {"title": name}},
        steps=[
            {
                "step_id": 0,
                "type": "tool_call",
                "content": name,
                "tool": {"name": name, "mcp_server": name},
                "input": {"to": name},
                "output_summary": name,
            }
        ],
        outcome={"result_summary": name},
        knowledge_graph_delta={
            "entities": [{"name": name, "type": name}],
            "relationships": [{"fact": name, "valid_from": name}],
        },
    )
    redacted: Any = redact_trace(document, find_entities=find)
    ReasoningTrace.model_validate(redacted)
    token, (step,), delta = "[REDACTED:person]", redacted["steps"], redacted["knowledge_graph_delta"]
    assert [redacted["metadata"]["validated_by"], redacted["task"]["objective"]] == [[token], token]
    assert [step["content"], step["input"], step["output_summary"]] == [token, {"to": token}, token]
    assert redacted["outcome"]["result_summary"] == token
    assert [delta["entities"][0]["name"], delta["relationships"][0]["fact"]] == [token, token]

    assert [redacted["id"], redacted["source_skill"], step["tool"]] == [
        document["id"],
        name,
        {"name": name, "mcp_server": name},
    ]
    assert [redacted["metadata"][key] for key in ("agent_id", "framework", "task_domain")] == [name] * 3
    assert [redacted["task"]["input_schema"], delta["entities"][0]["type"]] == [{"title": name}, name]


def test_the_texts_of_one_trace_share_the_limit_of_characters() -> None:
    text = "Seoul".ljust(500)
    search = limited(KnownNames(max_chars=1_000))
    assert len(search(text)) == 1
    assert len(search(text)) == 1
    with pytest.raises(NotSearchedError, match="too_long_for_presidio"):
        search("x")
    assert len(limited(KnownNames(max_chars=1_000))(text)) == 1


def test_a_short_text_counts_as_a_hundred_characters() -> None:
    search = limited(KnownNames(max_chars=1_000))
    for _ in range(10):
        search("x")
    with pytest.raises(NotSearchedError, match="too_long_for_presidio"):
        search("x")


def test_a_trace_above_the_limit_of_characters_is_not_published() -> None:
    trace = make_trace(task={"objective": "Kim Minsu flies to Seoul. " * 10})
    assert publication(PLAN, trace, 0.9, 1_000_000, KnownNames(max_chars=100)) == (b"", ["too_long_for_presidio"])
    published, reasons = publication(PLAN, trace, 0.9, 1_000_000, KnownNames())
    assert (b"Kim Minsu" in published, b"[REDACTED:person]" in published, reasons) == (False, True, [])


def test_a_plan_with_presidio_publishes_nothing_without_a_recogniser() -> None:
    with pytest.raises(RuntimeError, match=r"gate\.presidio, but nothing recognises"):
        publication(PLAN, make_trace(), 0.9, 1_000_000)


def test_the_digests_change_with_the_options_and_stay_without_them() -> None:
    def digests(**presidio: JsonValue) -> tuple[str, str]:
        gate: JsonValue = {"threshold": 0.5, "presidio": presidio} if presidio else {"threshold": 0.5}
        plan = read_plan({"gate": gate})
        return plan.digest, plan.gate_digest("m")

    assert digests() == (  # as in version 0.2, so that a config without the section keeps its digest
        "8907191ce99ddda5f7915f563ba5b8b6148bb79842cdc82404dc67ab8bc479e5",
        "4d8f69d9be2109a3c254f468d49e1ecaefe2cdf0a661c3d519a17e4da89896fb",
    )
    assert digests(model="a") == digests(model="a", score_threshold=0.5)
    different = [
        digests(),
        digests(model="a"),
        digests(model="b"),
        digests(model="a", entities=["PERSON"]),
        digests(model="a", score_threshold=0.9),
        digests(model="a", max_chars=10),
    ]
    assert len({digest for pair in different for digest in pair}) == 2 * len(different)


@pytest.mark.parametrize(
    ("presidio", "problem"),
    [
        ({}, "gate.presidio.model"),
        ({"model": ""}, "gate.presidio.model"),
        ({"model": "m", "entities": []}, "gate.presidio.entities"),
        ({"model": "m", "entities": ["person"]}, "gate.presidio.entities"),
        ({"model": "m", "score_threshold": 2}, "gate.presidio.score_threshold"),
        ({"model": "m", "max_chars": 0}, "gate.presidio.max_chars"),
        ({"model": "m", "language": "en"}, "gate.presidio.language"),
    ],
)
def test_an_invalid_option_is_a_problem_of_the_config(presidio: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_plan({"gate": {"presidio": presidio}})
    assert [said.startswith(problem) for said in refused.value.problems] == [True], refused.value.problems
