"""Topics on Apache Kafka are created with the right settings, checked, and never changed."""

from __future__ import annotations

import time
import uuid

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import STAGES
from traceweir.streams.tools.doctor.cluster import check_cluster
from traceweir.streams.worker.kafka.embedded_broker import is_embedded
from traceweir.streams.worker.kafka.topic_admin import (
    Inspection,
    check_topics,
    create_topics,
    inspect_topics,
    reach,
    write_problems,
)
from traceweir.streams.worker.kafka.topic_options import DAY_MS, options_at_creation
from traceweir.streams.worker.kafka.topic_problems import expected_topics

pytestmark = pytest.mark.kafka

DEADLINE_S = 30


@pytest.fixture
def settings(kafka: str) -> Settings:
    return Settings(kafka_bootstrap_servers=kafka, topic_prefix=f"admin-{uuid.uuid4().hex[:8]}.")


@pytest.fixture
def client(kafka: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka, "log_level": 0})


def make_topic(client: AdminClient, name: str, partitions: int, cleanup_policy: str, **options: str) -> None:
    new = NewTopic(name, partitions, 1, config={"cleanup.policy": cleanup_policy, **options})
    client.create_topics([new])[name].result()


def option(client: AdminClient, name: str, option_name: str) -> str | None:
    resource = ConfigResource(ResourceType.TOPIC, name)
    value: str | None = client.describe_configs([resource])[resource].result()[option_name].value
    return value


def cleanup_policy(client: AdminClient, name: str) -> str | None:
    return option(client, name, "cleanup.policy")


def test_apache_kafka_is_not_identified_as_an_embedded_broker(settings: Settings) -> None:
    assert not is_embedded(reach(settings))


def test_created_topics_have_the_expected_partitions_and_cleanup_policies(
    settings: Settings, client: AdminClient
) -> None:
    expected = expected_topics(settings, STAGES)

    creation = create_topics(settings)

    assert (creation.created, creation.existing, creation.wrong) == (tuple(expected), (), ())
    found = client.list_topics(timeout=60).topics
    assert {name: len(found[name].partitions) for name in expected} == dict.fromkeys(expected, 4)
    assert {name: cleanup_policy(client, name) for name in expected} == expected
    assert check_topics(settings) == []


def test_created_topics_keep_their_records_for_the_documented_time(settings: Settings, client: AdminClient) -> None:
    create_topics(settings)
    expected = expected_topics(settings, STAGES)
    retention_days = {name: days for name, days in settings.topics.retention_days().items() if name in expected}
    found = {name: option(client, name, "retention.ms") for name in retention_days}
    assert found == {name: str(days * DAY_MS) for name, days in retention_days.items()}


def test_a_short_retention_is_a_warning_and_no_problem(settings: Settings, client: AdminClient) -> None:
    name = settings.topics.results
    make_topic(client, name, 4, "delete", **{"retention.ms": "3600000"})
    create_topics(settings)
    inspection = inspect_topics(settings)
    assert inspection.problems == ()
    assert [name in warning for warning in inspection.warnings if "are advised" in warning] == [True]
    assert option(client, name, "retention.ms") == "3600000"


def test_created_topics_are_compacted_as_documented(settings: Settings, client: AdminClient) -> None:
    create_topics(settings)
    compacted = [name for name, policy in expected_topics(settings, STAGES).items() if policy == "compact"]
    expected = options_at_creation("compact", None, 1)
    assert f"{settings.topic_prefix}assemble-score-gate-state-changelog" in compacted
    assert {name: {each: option(client, name, each) for each in expected} for name in compacted} == dict.fromkeys(
        compacted, expected
    )


def test_the_command_of_a_warning_makes_an_old_changelog_as_a_new_one(settings: Settings, client: AdminClient) -> None:
    name = f"{settings.topic_prefix}assemble-score-gate-state-changelog"
    make_topic(client, name, 4, "compact", **{"delete.retention.ms": "60000"})
    create_topics(settings)
    inspection = inspect_topics(settings)
    assert inspection.problems == ()
    late, deletions = inspection.warnings
    assert f"topic {name!r} is compacted late (segment.bytes=1073741824, segment.ms=604800000, " in late
    assert f"topic {name!r} keeps deletions for " in deletions

    changes = [
        ConfigEntry(*change.split("="), incremental_operation=AlterConfigOpType.SET)
        for warning in inspection.warnings
        for change in warning.split("--add-config ")[1].rstrip("`").split(",")
    ]
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=changes)
    client.incremental_alter_configs([resource])[resource].result()

    # The controller has confirmed the change; a broker learns of it a moment later.
    deadline = time.monotonic() + DEADLINE_S
    while inspect_topics(settings) != Inspection((), ()) and time.monotonic() < deadline:
        pass
    assert inspect_topics(settings) == Inspection((), ())


@pytest.mark.parametrize("is_changelog", [False, True])
def test_a_written_topic_that_refuses_batches_is_a_problem_and_a_failure_of_the_doctor(
    settings: Settings, client: AdminClient, is_changelog: bool
) -> None:
    own = f"{settings.topic_prefix}assemble-score-gate-state-changelog"
    name, policy, found = (own, "compact", 524_288) if is_changelog else (settings.topics.results, "delete", 60_000)
    needs = "a batch of a worker has up to 1000000" if is_changelog else "a worker needs batches of at least 65536"
    make_topic(client, name, 4, policy, **{"max.message.bytes": str(found)})

    (problem,) = create_topics(settings).wrong

    assert problem.startswith(f"topic {name!r} has max.message.bytes={found}, and {needs} bytes: run ")
    assert f"--entity-name {name} --add-config max.message.bytes=" in problem
    assert check_topics(settings) == [problem]
    assert list(inspect_topics(settings).problems) == [problem]
    failures = [finding.text for finding in check_cluster(settings, STAGES) if finding.state == "failure"]
    assert failures == [problem]
    assert is_changelog or write_problems(settings, [name]) == {name: problem}


def test_a_written_topic_that_refuses_large_batches_is_a_warning(settings: Settings, client: AdminClient) -> None:
    make_topic(client, settings.topics.results, 4, "delete", **{"max.message.bytes": "524288"})
    create_topics(settings)
    inspection = inspect_topics(settings)
    assert inspection.problems == ()
    told = f"topic {settings.topics.results!r} has max.message.bytes=524288, so larger records of workers become dead"
    assert len([warning for warning in inspection.warnings if warning.startswith(told)]) == 1


def test_a_topic_that_only_agents_write_can_refuse_large_batches(settings: Settings, client: AdminClient) -> None:
    make_topic(client, settings.topics.invocations, 4, "delete", **{"max.message.bytes": "60000"})
    make_topic(client, settings.topics.references, 4, "compact", **{"max.message.bytes": "60000"})
    assert create_topics(settings).wrong == ()
    assert check_topics(settings) == []
    create_topics(settings, ["collect"])
    (problem,) = check_topics(settings, ["collect"])
    assert settings.topics.invocations in problem


def test_topics_with_three_copies_need_two_of_them_in_sync(settings: Settings, client: AdminClient) -> None:
    if len(client.list_topics(timeout=60).brokers) < 3:
        pytest.skip("needs three brokers")
    wanted = settings.model_copy(update={"replication_factor": 3})
    create_topics(wanted)
    assert {option(client, name, "min.insync.replicas") for name in expected_topics(wanted, STAGES)} == {"2"}
    assert inspect_topics(wanted) == Inspection((), ())


def test_creating_topics_again_changes_nothing(settings: Settings) -> None:
    first = create_topics(settings)

    second = create_topics(settings)

    assert (second.created, second.existing, second.wrong) == ((), first.created, ())


def test_another_set_of_stages_creates_only_its_changelog(settings: Settings) -> None:
    create_topics(settings)

    creation = create_topics(settings, ["score"])

    assert creation.created == (f"{settings.topic_prefix}score-state-changelog",)
    assert creation.wrong == ()


def test_a_check_reports_a_missing_topic_with_its_command_and_does_not_create_it(settings: Settings) -> None:
    problems = check_topics(settings)

    assert problems == [
        f"topic {name!r} does not exist: run `traceweir topics create`" for name in expected_topics(settings, STAGES)
    ]
    assert check_topics(settings) == problems


def test_a_wrong_partition_count_is_reported_and_not_changed(settings: Settings, client: AdminClient) -> None:
    traces = settings.topics.traces
    make_topic(client, traces, 3, "delete")

    creation = create_topics(settings)

    (problem,) = creation.wrong
    assert problem.startswith(
        f"topic {traces!r} has 3 partitions, expected 4 or more: add partitions with `kafka-topics.sh"
    )
    assert check_topics(settings) == [problem]
    assert len(client.list_topics(timeout=60).topics[traces].partitions) == 3


@pytest.mark.parametrize(
    ("field", "found", "expected"),
    [("network", "delete", "compact"), ("references", "compact,delete", "compact"), ("results", "compact", "delete")],
)
def test_a_wrong_cleanup_policy_is_reported_and_not_changed(
    settings: Settings, client: AdminClient, field: str, found: str, expected: str
) -> None:
    name = getattr(settings.topics, field)
    make_topic(client, name, 4, found)

    creation = create_topics(settings)

    (problem,) = creation.wrong
    assert problem.startswith(f"topic {name!r} has cleanup.policy={found}, expected {expected}: run `kafka-configs.sh ")
    assert f"--entity-name {name} --add-config cleanup.policy={expected}`" in problem
    assert check_topics(settings) == [problem]
    assert cleanup_policy(client, name) == found


def test_a_replication_factor_above_the_number_of_brokers_is_refused_by_name(
    settings: Settings, client: AdminClient
) -> None:
    brokers = len(client.list_topics(timeout=60).brokers)
    wanted = settings.model_copy(update={"replication_factor": brokers + 1})

    creation = create_topics(wanted)

    assert creation.created == ()
    assert len(creation.wrong) == len(expected_topics(wanted, STAGES))
    assert all(f"TRACEWEIR_REPLICATION_FACTOR (now {brokers + 1})" in sentence for sentence in creation.wrong)


def test_the_doctor_starts_a_transactional_producer_and_names_weak_topics(settings: Settings) -> None:
    create_topics(settings)
    findings = list(check_cluster(settings, STAGES))

    assert {finding.state for finding in findings} == {"ok"}
    (transactions,) = [finding for finding in findings if finding.check == "transactions"]
    assert f"{settings.topic_prefix}assemble-score-gate-doctor" in transactions.text

    three = settings.model_copy(update={"replication_factor": 3})
    weak = [finding for finding in check_cluster(three, STAGES) if finding.state == "warning"]
    assert {finding.check for finding in weak} == {"topics"}
