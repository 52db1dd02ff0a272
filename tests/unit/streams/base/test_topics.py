"""Tests the names of topics, applications and changelogs."""

from __future__ import annotations

from dataclasses import astuple

import pytest

from traceweir.streams.base.topics import ALL_STAGES, STAGES, StageName, Topics, application_id, changelog


def test_the_default_names_are_the_names_in_the_documentation() -> None:
    assert astuple(Topics.of()) == (
        "otlp_spans",
        "otlp_logs",
        "traceweir.spans",
        "traceweir.traces",
        "traceweir.invocations",
        "traceweir.strays",
        "traceweir.references",
        "traceweir.configs",
        "traceweir.labels",
        "traceweir.sessions",
        "traceweir.candidates",
        "traceweir.results",
        "traceweir.network",
        "traceweir.dead-letters",
        "traceweir.anchors",
        "traceweir.anchor-verdicts",
        "traceweir.alerts",
        "traceweir.alerts-state",
        "traceweir.export-waiting",
    )


def test_every_topic_has_a_policy_and_seven_are_compacted() -> None:
    topics = Topics.of("acme-")
    policies = topics.cleanup_policies(ALL_STAGES)

    assert tuple(policies) == astuple(topics)
    assert [name for name, policy in policies.items() if policy == "compact"] == [
        "acme-references",
        "acme-configs",
        "acme-labels",
        "acme-network",
        "acme-anchors",
        "acme-alerts",
        "acme-alerts-state",
        "acme-export-waiting",
    ]


def test_the_topics_of_spans_are_needed_only_if_the_stage_collect_runs() -> None:
    topics = Topics.of()
    more = topics.cleanup_policies(ALL_STAGES).keys() - topics.cleanup_policies().keys()
    assert more == {"otlp_spans", "otlp_logs", "traceweir.spans"}


def test_the_topics_of_the_collector_have_configured_names_without_the_prefix() -> None:
    topics = Topics.of("acme.", "prod_spans", "prod_logs")
    assert (topics.otlp_spans, topics.otlp_logs, topics.spans) == ("prod_spans", "prod_logs", "acme.spans")


def test_a_shadow_has_a_topic_under_the_prefix() -> None:
    assert Topics.of("acme.").shadow_results("v2") == "acme.results.shadow.v2"


@pytest.mark.parametrize("name", ["", "a.b", "a/b", "é", "v2\n", "a" * 101])
def test_a_name_that_is_no_part_of_a_topic_names_no_shadow(name: str) -> None:
    with pytest.raises(ValueError, match="cannot name a shadow"):
        Topics.of().shadow_results(name)


@pytest.mark.parametrize(
    ("prefix", "stages", "expected"),
    [
        ("traceweir.", STAGES, "traceweir.assemble-score-gate"),
        ("traceweir.", ALL_STAGES, "traceweir.collect-assemble-score-gate"),
        ("traceweir.", {"gate", "assemble"}, "traceweir.assemble-gate"),
        ("traceweir.", ["gate", "gate", "score"], "traceweir.score-gate"),
        ("", ["gate"], "gate"),
    ],
)
def test_an_application_is_named_by_its_stages_in_path_order(
    prefix: str, stages: list[StageName], expected: str
) -> None:
    assert application_id(prefix, stages) == expected


def test_an_unknown_stage_is_rejected_with_the_known_stages() -> None:
    with pytest.raises(ValueError, match="unknown stage 'sort'; choose from collect, assemble, score, gate"):
        application_id("traceweir.", ["sort"])  # type: ignore[list-item]


def test_an_empty_list_of_stages_is_rejected() -> None:
    with pytest.raises(ValueError, match="no stage given"):
        application_id("traceweir.", [])


def test_a_changelog_is_named_after_its_application() -> None:
    assert changelog("traceweir.score") == "traceweir.score-state-changelog"
