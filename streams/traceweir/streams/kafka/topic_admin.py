"""Creates topics on a cluster, and reports problems of existing topics."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient, ClusterMetadata, ConfigResource, NewTopic, ResourceType

from traceweir.streams.kafka import embedded_broker
from traceweir.streams.kafka.topic_options import FoundTopic, options_at_creation, weaknesses
from traceweir.streams.settings import Settings, confluent_options
from traceweir.streams.topics import STAGES, CleanupPolicy, StageName, application_id, changelog

REQUEST_TIMEOUT_S = 10.0
"""Time limit for each answer of a broker, unless the caller sets one."""
METADATA_DELAY_S = 30.0
"""Time limit until every broker knows a topic that the controller has created."""
_LOOK_EVERY_S = 1.0
_ASK_AGAIN_AFTER_S = 0.1
_WAITING = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT)
"""Codes of a broker that does not know a new topic yet, or has not answered in time."""
log = logging.getLogger(__name__)
_REFUSALS = (KafkaError._AUTHENTICATION, KafkaError._SSL)
_TRANSACTIONS = "__transaction_state"
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""The id of zeros, in base 64, that a broker without ids returns."""


class KafkaUnreachableError(Exception):
    """No broker answered in time; the message contains the address, the reason and the way out."""


class TopicsRefusedError(Exception):
    """The cluster refuses to create or to delete topics; the message names each topic with the reason."""


@dataclass(frozen=True)
class Creation:
    """Result of `create_topics`; every expected topic is in exactly one of the three fields."""

    created: tuple[str, ...]
    """Names of the topics that were created."""
    existing: tuple[str, ...]
    """Names of the topics that existed and are correct."""
    wrong: tuple[str, ...]
    """A sentence for each topic that exists and is wrong (it is not changed), or that could not be created."""


@dataclass(frozen=True)
class Inspection:
    """Result of `inspect_topics`."""

    problems: tuple[str, ...]
    """A sentence for each expected topic that is missing or wrong: found value, expected value, and the way out."""
    warnings: tuple[str, ...]
    """A sentence for each way in which records of a topic are less safe than in a topic that Traceweir creates."""


def create_topics(settings: Settings, stages: Collection[StageName] = STAGES) -> Creation:
    """Creates all missing topics, and the changelog topic of the application that runs `stages`.

    Existing topics are never changed: another partition count would change the home of sessions, and another cleanup
    policy could delete records. Stages that run as separate applications have one changelog each, so call this function
    once for each application.

    Raises:
        KafkaUnreachableError: No broker answered within 10 s.
    """
    cluster = _Cluster(settings)
    expected = expected_topics(settings, stages)
    missing = expected.keys() - cluster.partition_counts().keys()
    made, refusals = cluster.create({name: expected[name] for name in sorted(missing)})
    # Created topics are correct, even if the next broker does not know them yet.
    known = {name: policy for name, policy in expected.items() if name not in made and name not in refusals}
    wrong = _problems(cluster, settings, known)
    if (unchecked := cluster.unchecked()) is not None:
        log.warning("%s", unchecked)
    bad = refusals | wrong
    return Creation(
        created=tuple(name for name in expected if name in missing and name not in bad),
        existing=tuple(name for name in expected if name not in missing and name not in bad),
        wrong=tuple(bad.values()),
    )


def create_named(settings: Settings, wanted: Mapping[str, CleanupPolicy], retention_days: Mapping[str, int]) -> None:
    """Creates those of these topics that are missing; existing topics stay unchanged.

    Args:
        settings: Where Kafka is, the number of partitions, and of copies.
        wanted: The cleanup policies by topic name.
        retention_days: The days for which a topic keeps a record, by topic name; a topic without: the broker's default.

    Raises:
        TopicsRefusedError: a topic could not be created, or exists with another number of partitions.
        KafkaUnreachableError: No broker answered within 10 s.
    """
    cluster = _Cluster(settings)
    counts = cluster.partition_counts()
    _, refusals = cluster.create({name: wanted[name] for name in wanted if name not in counts}, retention_days)
    wrong = [_partition_problem(name, counts[name], settings, cluster) for name in wanted if name in counts]
    if problems := [*refusals.values(), *(problem for problem in wrong if problem is not None)]:
        raise TopicsRefusedError("\n".join(problems))


def existing_topics(settings: Settings) -> set[str]:
    """Returns the names of all topics of the cluster that this user can see.

    Raises:
        KafkaUnreachableError: No broker answered within 10 s.
    """
    return set(_Cluster(settings).partition_counts())


def delete_topics(settings: Settings, names: Collection[str]) -> None:
    """Deletes those of these topics that exist.

    Raises:
        TopicsRefusedError: a topic could not be deleted.
        KafkaUnreachableError: No broker answered within 10 s.
    """
    _Cluster(settings).delete(names)


def check_topics(settings: Settings, stages: Collection[StageName] = STAGES) -> list[str]:
    """Returns a sentence for every topic that is missing or wrong: found value, expected value, and the way out.

    The function checks existence, partition count and, except on an embedded broker, cleanup policy. It logs a warning
    if this user is not allowed to read the policies.

    Raises:
        KafkaUnreachableError: No broker answered within 10 s.
    """
    cluster = _Cluster(settings)
    problems = _problems(cluster, settings, expected_topics(settings, stages))
    if (unchecked := cluster.unchecked()) is not None:
        log.warning("%s", unchecked)
    return list(problems.values())


def inspect_topics(settings: Settings, stages: Collection[StageName] = STAGES) -> Inspection:
    """Returns what `check_topics` returns, and warnings of weak replication and short retention.

    The worker does not ask for the warnings: a weak topic changes no record, and its owner can have chosen the values.
    An embedded broker has neither replication nor retention, so there are no warnings.

    Raises:
        KafkaUnreachableError: No broker answered within 10 s.
    """
    cluster = _Cluster(settings)
    expected = expected_topics(settings, stages)
    retention_days = settings.topics.retention_days()
    where = settings.kafka_bootstrap_servers
    problems = tuple(_problems(cluster, settings, expected).values())
    warnings = [
        warning
        for found in cluster.found_topics(expected)
        for warning in weaknesses(found, retention_days.get(found.name), settings.replication_factor, where)
    ]
    if (unchecked := cluster.unchecked()) is not None:
        warnings.append(unchecked)
    return Inspection(problems, tuple(warnings))


def check_partitions(settings: Settings, names: Collection[str]) -> list[str]:
    """Returns a sentence for each of these topics that is missing or has a wrong partition count.

    In contrast to `check_topics`, this function requests only metadata, which every reader and writer of a topic is
    allowed to see.

    Raises:
        KafkaUnreachableError: No broker answered within 10 s.
    """
    return list(_partition_problems(_Cluster(settings), settings, names).values())


def write_problems(settings: Settings, names: Collection[str]) -> dict[str, str]:
    """Returns, by name, a sentence for each of these topics that this user cannot write to, or that is missing or wrong.

    Raises:
        KafkaUnreachableError: No broker answered within 10 s.
    """
    cluster = _Cluster(settings)
    problems = _partition_problems(cluster, settings, names)
    known = [name for name in names if name not in problems]
    refused = "this user lacks the right Write on topic {!r}: grant it (docs/access-control.md)"
    return problems | {name: refused.format(name) for name in cluster.not_writable(known)}


def topic_ids(settings: Settings, names: Collection[str]) -> dict[str, str]:
    """Returns the ids of existing topics: a topic that was deleted and created again has another id.

    The topics of an embedded broker have none, and end with it; its own id stands for theirs. Brokers before Kafka 2.8
    have no ids, and all topics are left out.

    Raises:
        KafkaUnreachableError: No broker answered within 10 s.
    """
    return _Cluster(settings).topic_ids(names)


def check_transactions(settings: Settings, timeout_ms: int) -> list[str]:
    """Returns a sentence for each reason why the cluster cannot run transactions of up to `timeout_ms` milliseconds.

    Settings that this user is not allowed to read are not checked; their problems appear when the worker takes over its
    first partition.

    Raises:
        KafkaUnreachableError: No broker answered within 10 s.
    """
    cluster = _Cluster(settings)
    metadata = cluster.metadata()
    options = cluster.broker_options()
    problems = []
    most, copies = options.get("transaction.max.timeout.ms"), options.get("transaction.state.log.replication.factor")
    if most is not None and int(most) < timeout_ms:
        problems.append(
            f"the brokers' transaction.max.timeout.ms is {most}, and Traceweir's transactions need {timeout_ms}: raise "
            "this setting (Kafka's default is 900000)"
        )
    if copies is not None and int(copies) > len(metadata.brokers) and _TRANSACTIONS not in metadata.topics:
        problems.append(
            f"the cluster cannot run transactions: its topic {_TRANSACTIONS} needs {copies} copies, and the cluster has "
            f"{len(metadata.brokers)} brokers; start more brokers, or reduce transaction.state.log.replication.factor on "
            "the brokers"
        )
    return problems


def reach(settings: Settings, timeout_s: float | None = None) -> str | None:
    """Returns the cluster's id when a broker answers; None from brokers that are too old to report it.

    Raises:
        KafkaUnreachableError: No broker answered within `timeout_s` seconds (None: `REQUEST_TIMEOUT_S`).
    """
    cluster_id: str | None = _Cluster(settings).metadata(timeout_s).cluster_id
    return cluster_id


def expected_topics(settings: Settings, stages: Collection[StageName]) -> dict[str, CleanupPolicy]:
    """Returns the names of all topics of these stages and of the application's changelog, with their cleanup policies."""
    own: dict[str, CleanupPolicy] = {changelog(application_id(settings.topic_prefix, stages)): "compact"}
    return settings.topics.cleanup_policies(stages) | own


def _problems(cluster: _Cluster, settings: Settings, expected: Mapping[str, CleanupPolicy]) -> dict[str, str]:
    """Returns, by topic name, a sentence for each expected topic that is missing or wrong."""
    counts = cluster.partition_counts()
    options = cluster.topic_options([name for name in expected if name in counts])
    policies = {name: found["cleanup.policy"] for name, found in options.items()}
    problems = {}
    for name, policy in expected.items():
        if (problem := _partition_problem(name, counts.get(name), settings, cluster)) is not None:
            problems[name] = problem
        elif policies.get(name, policy) != policy:
            problems[name] = (
                f"topic {name!r} has cleanup.policy={policies[name]}, expected {policy}: run `kafka-configs.sh "
                f"--bootstrap-server {settings.kafka_bootstrap_servers} --alter --entity-type topics --entity-name {name} "
                f"--add-config cleanup.policy={policy}`, or, if its records are not needed, delete the topic and run "
                "`traceweir topics create`"
            )
    return problems


def _partition_problems(cluster: _Cluster, settings: Settings, names: Collection[str]) -> dict[str, str]:
    """Returns, by name, a sentence for each of these topics that is missing or has a wrong partition count."""
    counts = cluster.partition_counts()
    found = ((name, _partition_problem(name, counts.get(name), settings, cluster)) for name in names)
    return {name: problem for name, problem in found if problem is not None}


def _partition_problem(name: str, found: int | None, settings: Settings, cluster: _Cluster) -> str | None:
    if found == settings.partitions:
        return None
    if found is None and name.startswith(settings.topics.shadow_results_prefix):
        return f"topic {name!r} does not exist: check the name of the shadow"
    if found is None:
        return f"topic {name!r} does not exist: run `traceweir topics create`"
    what = f"topic {name!r} has {found} partitions, expected {settings.partitions}"
    if cluster.embedded:
        return f"{what}: every topic of an embedded broker has {found}; set TRACEWEIR_PARTITIONS={found}"
    topics = settings.topics
    variables = {topics.otlp_spans: "TRACEWEIR_OTLP_SPANS_TOPIC", topics.otlp_logs: "TRACEWEIR_OTLP_LOGS_TOPIC"}
    if name in variables and found < settings.partitions:
        return (
            f"{what}: add partitions with `kafka-topics.sh --bootstrap-server {settings.kafka_bootstrap_servers} --alter "
            f"--topic {name} --partitions {settings.partitions}`; the records of this topic can be on any partition"
        )
    if name in variables:
        return (
            f"{what}: name another topic with {variables[name]}, and let the Collector write to it; or set "
            f"TRACEWEIR_PARTITIONS={found} if all topics have {found}"
        )
    return (
        f"{what}: set TRACEWEIR_PARTITIONS={found} if all topics have {found}; otherwise, if its records are not needed, delete the "
        "topic and "
        "run `traceweir topics create`"
    )


class _Cluster:
    """Requests to a cluster: Apache Kafka or the embedded broker."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._errors: list[KafkaError] = []
        # The callback collects errors for Traceweir's message; librdkafka would also write them to stderr.
        quiet = {"log_level": 0, "error_cb": self._errors.append}
        try:
            self._client = AdminClient(confluent_options(settings) | quiet)
        except KafkaException as error:  # an invalid TLS file, or an option that this build of librdkafka lacks
            raise KafkaUnreachableError(f"Kafka's client does not start: {error.args[0].str()}") from error
        self._embedded: bool | None = None
        self.unreadable: set[str] = set()
        """Names of the topics whose options this user is not allowed to read."""

    @property
    def embedded(self) -> bool:
        if self._embedded is None:
            self.metadata()
        return bool(self._embedded)

    def metadata(self, timeout_s: float | None = None) -> ClusterMetadata:
        timeout_s = REQUEST_TIMEOUT_S if timeout_s is None else timeout_s
        # Always for all topics: a request by name creates the topic if the cluster allows automatic creation.
        deadline = time.monotonic() + timeout_s
        while True:
            left = deadline - time.monotonic()
            try:
                metadata = self._client.list_topics(timeout=max(0.0, min(left, _LOOK_EVERY_S)))
                if metadata.brokers:
                    break
                if left <= _LOOK_EVERY_S:
                    raise KafkaUnreachableError(
                        f"a Kafka node at {self._settings.kafka_bootstrap_servers} answers, and has named no broker for "
                        f"{timeout_s:g} s: the node has lost its cluster, or has just started. Check that the brokers and "
                        "their controllers run"
                    )
                time.sleep(_ASK_AGAIN_AFTER_S)
            except KafkaException as error:
                self._client.poll(0)  # passes the collected errors to the callback
                refused = next(filter(_is_refusal, self._errors), None)
                if refused is not None:  # a retry of librdkafka would be refused again
                    raise KafkaUnreachableError(_locked_out(refused, self._settings)) from error
                if left <= _LOOK_EVERY_S:
                    reason = (self._errors or error.args)[0].str()
                    raise KafkaUnreachableError(
                        f"no Kafka broker answered at {self._settings.kafka_bootstrap_servers} within {timeout_s:g} s ({reason}): "
                        "start a broker (`docker compose up`, or `traceweir broker` for a trial), or set "
                        "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS"
                    ) from error
        self._embedded = embedded_broker.is_embedded(metadata.cluster_id)
        return metadata

    def partition_counts(self) -> dict[str, int]:
        return {name: len(topic.partitions) for name, topic in self.metadata().topics.items()}

    def found_topics(self, names: Collection[str]) -> list[FoundTopic]:
        """Returns those of these topics that exist; none for an embedded broker, whose topics have no options."""
        topics = self.metadata().topics
        options = self.topic_options([name for name in names if name in topics])
        return [
            FoundTopic(name, min(len(each.replicas) for each in topics[name].partitions.values()), found)
            for name, found in options.items()
        ]

    def topic_options(self, names: Collection[str]) -> dict[str, dict[str, str]]:
        """Returns the options of existing topics; empty for an embedded broker, which has no options.

        A topic whose options this user is not allowed to read is added to `unreadable`.
        """
        if self.embedded or not names:
            return {}
        asked = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        deadline = time.monotonic() + METADATA_DELAY_S
        while True:
            try:
                answers = self._client.describe_configs(asked, request_timeout=REQUEST_TIMEOUT_S)
                found = {}
                for resource, answer in answers.items():
                    try:
                        found[resource.name] = {name: entry.value for name, entry in answer.result().items()}
                    except KafkaException as error:
                        if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                            raise
                        self.unreadable.add(resource.name)
            except KafkaException as error:
                if error.args[0].code() not in _WAITING or time.monotonic() > deadline:
                    raise self._no_answer("the configuration of the topics", error) from error
                time.sleep(0.05)
            else:
                return found

    def topic_ids(self, names: Collection[str]) -> dict[str, str]:
        metadata = self.metadata()
        known = [name for name in names if name in metadata.topics]
        if self.embedded or not known:
            return dict.fromkeys(known, metadata.cluster_id)
        asked = self._client.describe_topics(TopicCollection(known), request_timeout=REQUEST_TIMEOUT_S)
        try:
            found = {name: str(answer.result().topic_id) for name, answer in asked.items()}
        except KafkaException as error:
            raise self._no_answer("the ids of the topics", error) from error
        return {name: topic_id for name, topic_id in found.items() if topic_id != _NO_ID}

    def not_writable(self, names: Collection[str]) -> list[str]:
        """Returns those of these existing topics on which this user lacks the right Write.

        Brokers that do not say it count as allowing everything: they have no access control, or are embedded.
        """
        if self.embedded or not names:
            return []
        asked = self._client.describe_topics(
            TopicCollection(list(names)), include_authorized_operations=True, request_timeout=REQUEST_TIMEOUT_S
        )
        try:
            rights = {name: answer.result().authorized_operations for name, answer in asked.items()}
        except KafkaException as error:
            raise self._no_answer("the rights on the topics", error) from error
        return [name for name, found in rights.items() if found and AclOperation.WRITE not in found]

    def unchecked(self) -> str | None:
        """Returns a sentence about the topics whose options this user is not allowed to read; None if there are none."""
        if not self.unreadable:
            return None
        first, *others = sorted(self.unreadable)
        more = f" and {len(others)} more" if others else ""
        return (
            f"the settings of topic {first!r}{more} are not checked, because this user lacks the right DescribeConfigs on them; "
            "grant the right, or check cleanup.policy and retention.ms yourself"
        )

    def broker_options(self) -> dict[str, str | None]:
        """Returns the configuration of one broker; empty if this user is not allowed to read it."""
        broker = next(iter(self.metadata().brokers))
        asked = ConfigResource(ResourceType.BROKER, str(broker))
        try:
            answer = self._client.describe_configs([asked], request_timeout=REQUEST_TIMEOUT_S)[asked].result()
        except KafkaException:
            return {}
        return {name: entry.value for name, entry in answer.items()}

    def delete(self, names: Collection[str]) -> None:
        found = [name for name in names if name in self.metadata().topics]
        if not found:
            return
        refusals = []
        for name, answer in self._client.delete_topics(found, request_timeout=REQUEST_TIMEOUT_S).items():
            try:
                answer.result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    refusals.append(f"topic {name!r} could not be deleted: {error.args[0].str()}")
        if refusals:
            raise TopicsRefusedError("\n".join(refusals))

    def create(
        self, wanted: Mapping[str, CleanupPolicy], retention_days: Mapping[str, int] | None = None
    ) -> tuple[set[str], dict[str, str]]:
        """Creates topics and waits until the brokers know them.

        Returns:
            The names of the created topics, and a sentence for each refused topic by its name.
        """
        if not wanted:
            return set(), {}
        if self.embedded:
            try:
                for name in wanted:  # a request by name creates the topic
                    self._client.list_topics(name, timeout=REQUEST_TIMEOUT_S)
            except KafkaException as error:
                raise self._no_answer("the topics", error) from error
            return set(), {}
        settings = self._settings
        copies = settings.replication_factor
        retention_days = settings.topics.retention_days() if retention_days is None else retention_days
        new = [
            NewTopic(
                name,
                settings.partitions,
                copies,
                config=options_at_creation(policy, retention_days.get(name), copies),
            )
            for name, policy in wanted.items()
        ]
        made, refusals = set(), {}
        for name, answer in self._client.create_topics(new, request_timeout=REQUEST_TIMEOUT_S).items():
            try:
                answer.result()
                made.add(name)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:  # another process was faster
                    refusals[name] = _refusal(name, error.args[0], settings)
        self._wait_for(wanted.keys() - refusals.keys())
        return made, refusals

    def _no_answer(self, what: str, error: KafkaException) -> KafkaUnreachableError:
        return KafkaUnreachableError(
            f"Kafka at {self._settings.kafka_bootstrap_servers} did not return {what} ({error.args[0].str()}): check that the "
            "brokers run, and that this user may describe the topics and their configuration"
        )

    def _wait_for(self, names: Collection[str]) -> None:
        """Waits until the answering broker knows the topics.

        This takes milliseconds, except on a broker that has just started.
        """
        deadline = time.monotonic() + METADATA_DELAY_S
        while set(names) - self.partition_counts().keys() and time.monotonic() < deadline:
            time.sleep(0.05)


def _is_refusal(error: KafkaError) -> bool:
    # With TLS 1.3 the broker refuses a client certificate after the handshake; librdkafka reports a broken connection.
    return error.code() in _REFUSALS or "SSL routines" in error.str()


def _locked_out(error: KafkaError, settings: Settings) -> str:
    where, why = settings.kafka_bootstrap_servers, error.str()
    if error.code() == KafkaError._AUTHENTICATION:
        return (
            f"Kafka at {where} refuses the login of user {settings.kafka_sasl_username!r} ({why}): check TRACEWEIR_KAFKA_SASL_USERNAME, "
            "TRACEWEIR_KAFKA_SASL_PASSWORD and TRACEWEIR_KAFKA_SASL_MECHANISM"
        )
    return (
        f"no TLS connection with Kafka at {where} ({why}): check TRACEWEIR_KAFKA_SSL_CAFILE, which must contain the certificate of the "
        "authority that signed the brokers' certificates, and, if the brokers require a client certificate, "
        "TRACEWEIR_KAFKA_SSL_CERTFILE and TRACEWEIR_KAFKA_SSL_KEYFILE"
    )


def _refusal(name: str, error: KafkaError, settings: Settings) -> str:
    hint = ""
    if error.code() == KafkaError.INVALID_REPLICATION_FACTOR:
        hint = (
            f"; set TRACEWEIR_REPLICATION_FACTOR (now {settings.replication_factor}) to the number of brokers or less"
        )
    return f"topic {name!r} could not be created: {error.str()}{hint}"
