"""Topics on a cluster: make them, and say what is wrong with those that are there."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata, ConfigResource, NewTopic, ResourceType

from traceweir.streams.kafka import embedded_broker
from traceweir.streams.settings import Settings, confluent_options
from traceweir.streams.topics import STAGES, CleanupPolicy, StageName, Topics, application_id, changelog

_REQUEST_TIMEOUT_S = 10.0
_HEARSAY_S = 30.0
"""How long a broker may not have heard of a topic that the controller has made."""
_LOOK_EVERY_S = 1.0
_REFUSALS = (KafkaError._AUTHENTICATION, KafkaError._SSL)
_TRANSACTIONS = "__transaction_state"


class KafkaUnreachableError(Exception):
    """No broker answered in time; the message says where, why and what to do."""


@dataclass(frozen=True)
class Creation:
    """What `create_topics` did; every expected topic is named once, in one of the three."""

    created: tuple[str, ...]
    """Names of the topics that were missing and now exist."""
    existing: tuple[str, ...]
    """Names of those that were there already, as they should be."""
    wrong: tuple[str, ...]
    """A sentence for each that is there but wrong (left as it is), or that could not be made."""


def create_topics(settings: Settings, stages: Collection[StageName] = STAGES) -> Creation:
    """Create what is missing of all topics and of the changelog of the application that runs `stages`.

    What exists is never changed: other partitions would give sessions other homes, and another cleanup policy could
    delete records. Stages that run as applications of their own have a changelog each, so one call each.

    Raises:
        KafkaUnreachable: No broker answered within 10 s.
    """
    cluster = _Cluster(settings)
    expected = expected_topics(settings, stages)
    missing = expected.keys() - cluster.partition_counts().keys()
    made, refusals = cluster.create({name: expected[name] for name in sorted(missing)})
    # What was made here is as wanted, though the broker that is asked next may not have heard of it yet.
    known = {name: policy for name, policy in expected.items() if name not in made and name not in refusals}
    wrong = _problems(cluster, settings, known)
    bad = refusals | wrong
    return Creation(
        created=tuple(name for name in expected if name in missing and name not in bad),
        existing=tuple(name for name in expected if name not in missing and name not in bad),
        wrong=tuple(bad.values()),
    )


def check_topics(settings: Settings, stages: Collection[StageName] = STAGES) -> list[str]:
    """Give a sentence for every topic that is missing or wrong, with what was found, expected, and the way out.

    Checked are existence, partition count and cleanup policy; on an embedded broker, which knows no policies, the
    first two. Replication is not: it is the cluster's business, and no record depends on it.

    Raises:
        KafkaUnreachable: No broker answered within 10 s.
    """
    return list(_problems(_Cluster(settings), settings, expected_topics(settings, stages)).values())


def check_partitions(settings: Settings, names: Collection[str]) -> list[str]:
    """Give a sentence for each of these topics that is missing or has another partition count than expected.

    Unlike `check_topics` it asks for nothing but metadata, which whoever may read or write a topic may see.

    Raises:
        KafkaUnreachable: No broker answered within 10 s.
    """
    cluster = _Cluster(settings)
    counts = cluster.partition_counts()
    problems = (_partition_problem(name, counts.get(name), settings, cluster) for name in names)
    return [problem for problem in problems if problem is not None]


def check_transactions(settings: Settings, timeout_ms: int) -> list[str]:
    """Give a sentence for whatever keeps the cluster from transactions that may last `timeout_ms`.

    What the cluster does not let this user see is not checked; it then shows when the first partition is taken over.

    Raises:
        KafkaUnreachable: No broker answered within 10 s.
    """
    cluster = _Cluster(settings)
    metadata = cluster.metadata()
    options = cluster.broker_options()
    problems = []
    most, copies = options.get("transaction.max.timeout.ms"), options.get("transaction.state.log.replication.factor")
    if most is not None and int(most) < timeout_ms:
        problems.append(
            f"the brokers' transaction.max.timeout.ms is {most}, and Traceweir's transactions ask for {timeout_ms}: raise it (Kafka's "
            "default is 900000)"
        )
    if copies is not None and int(copies) > len(metadata.brokers) and _TRANSACTIONS not in metadata.topics:
        problems.append(
            f"the cluster cannot have transactions: its topic {_TRANSACTIONS} is to have {copies} copies and there are "
            f"{len(metadata.brokers)} brokers; start more, or set transaction.state.log.replication.factor on the brokers"
        )
    return problems


def reach(settings: Settings, timeout_s: float = 10.0) -> str | None:
    """Give the cluster's id once a broker answers (None from brokers too old to tell).

    Raises:
        KafkaUnreachable: None did within `timeout_s` seconds.
    """
    cluster_id: str | None = _Cluster(settings).metadata(timeout_s).cluster_id
    return cluster_id


def expected_topics(settings: Settings, stages: Collection[StageName]) -> dict[str, CleanupPolicy]:
    """Give the names of all topics under the prefix and of the application's changelog, with their cleanup policies."""
    own: dict[str, CleanupPolicy] = {changelog(application_id(settings.topic_prefix, stages)): "compact"}
    return Topics.of(settings.topic_prefix).cleanup_policies() | own


def _problems(cluster: _Cluster, settings: Settings, expected: Mapping[str, CleanupPolicy]) -> dict[str, str]:
    """Give a sentence for each expected topic that is missing or wrong, by name."""
    counts = cluster.partition_counts()
    policies = cluster.cleanup_policies([name for name in expected if name in counts])
    problems = {}
    for name, policy in expected.items():
        if (problem := _partition_problem(name, counts.get(name), settings, cluster)) is not None:
            problems[name] = problem
        elif policies.get(name, policy) != policy:
            problems[name] = (
                f"topic {name!r} has cleanup.policy={policies[name]}, expected {policy}: run `kafka-configs.sh "
                f"--bootstrap-server {settings.kafka_bootstrap_servers} --alter --entity-type topics --entity-name {name} "
                f"--add-config cleanup.policy={policy}`, or, if its records may go, delete it and run "
                "`traceweir topics create`"
            )
    return problems


def _partition_problem(name: str, found: int | None, settings: Settings, cluster: _Cluster) -> str | None:
    if found == settings.partitions:
        return None
    if found is None:
        return f"topic {name!r} does not exist: run `traceweir topics create`"
    what = f"topic {name!r} has {found} partitions, expected {settings.partitions}"
    if cluster.embedded:
        return f"{what}: every topic of an embedded broker has {found}; set TRACEWEIR_PARTITIONS={found}"
    return (
        f"{what}: set TRACEWEIR_PARTITIONS={found} if all topics have {found}; else, if its records may go, delete it and "
        "run `traceweir topics create`"
    )


class _Cluster:
    """The few questions and the one command that a cluster is asked here, Kafka or embedded_broker."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._errors: list[KafkaError] = []
        # Errors come through the callback, for our message; librdkafka would also write them to stderr.
        quiet = {"log_level": 0, "error_cb": self._errors.append}
        try:
            self._client = AdminClient(confluent_options(settings) | quiet)
        except KafkaException as error:  # a TLS file that is none, an option this build of librdkafka lacks
            raise KafkaUnreachableError(f"Kafka's client does not start: {error.args[0].str()}") from error
        self._embedded: bool | None = None

    @property
    def embedded(self) -> bool:
        if self._embedded is None:
            self.metadata()
        return bool(self._embedded)

    def metadata(self, timeout_s: float = _REQUEST_TIMEOUT_S) -> ClusterMetadata:
        # Always of all topics: to ask for one by name creates it where the cluster allows that.
        deadline = time.monotonic() + timeout_s
        while True:
            left = deadline - time.monotonic()
            try:
                metadata = self._client.list_topics(timeout=max(0.0, min(left, _LOOK_EVERY_S)))
                break
            except KafkaException as error:
                self._client.poll(0)  # hands the collected errors to the callback
                refused = next(filter(_is_refusal, self._errors), None)
                if refused is not None:  # librdkafka would try again, and be refused again
                    raise KafkaUnreachableError(_locked_out(refused, self._settings)) from error
                if left <= _LOOK_EVERY_S:
                    reason = (self._errors or error.args)[0].str()
                    raise KafkaUnreachableError(
                        f"no Kafka broker answered at {self._settings.kafka_bootstrap_servers} within {timeout_s:g} s ({reason}): "
                        "start one (`docker compose up`, or `traceweir broker` for a trial), or set "
                        "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS"
                    ) from error
        self._embedded = embedded_broker.is_embedded(metadata.cluster_id)
        return metadata

    def partition_counts(self) -> dict[str, int]:
        return {name: len(topic.partitions) for name, topic in self.metadata().topics.items()}

    def cleanup_policies(self, names: Collection[str]) -> dict[str, str]:
        """Give the policies of topics that exist; nothing from an embedded broker, which has none."""
        if self.embedded or not names:
            return {}
        asked = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        deadline = time.monotonic() + _HEARSAY_S
        while True:
            answers = self._client.describe_configs(asked, request_timeout=_REQUEST_TIMEOUT_S)
            try:
                return {resource.name: answer.result()["cleanup.policy"].value for resource, answer in answers.items()}
            except KafkaException as error:
                # Another broker answers than the one that knew of the topics.
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def broker_options(self) -> dict[str, str | None]:
        """Give the configuration of one broker; nothing where it may not be seen."""
        broker = next(iter(self.metadata().brokers))
        asked = ConfigResource(ResourceType.BROKER, str(broker))
        try:
            answer = self._client.describe_configs([asked], request_timeout=_REQUEST_TIMEOUT_S)[asked].result()
        except KafkaException:
            return {}
        return {name: entry.value for name, entry in answer.items()}

    def create(self, wanted: Mapping[str, CleanupPolicy]) -> tuple[set[str], dict[str, str]]:
        """Create topics and wait until they are known; give the names of those made, and a sentence for each that was refused, by name."""
        if not wanted:
            return set(), {}
        if self.embedded:
            for name in wanted:  # to be asked for is to exist
                self._client.list_topics(name, timeout=_REQUEST_TIMEOUT_S)
            return set(), {}
        settings = self._settings
        new = [
            NewTopic(name, settings.partitions, settings.replication_factor, config={"cleanup.policy": policy})
            for name, policy in wanted.items()
        ]
        made, refusals = set(), {}
        for name, answer in self._client.create_topics(new, request_timeout=_REQUEST_TIMEOUT_S).items():
            try:
                answer.result()
                made.add(name)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:  # somebody else was faster
                    refusals[name] = _refusal(name, error.args[0], settings)
        self._wait_for(wanted.keys() - refusals.keys())
        return made, refusals

    def _wait_for(self, names: Collection[str]) -> None:
        """Wait until the broker that answers has heard from the controller, which takes milliseconds unless it was just started."""
        deadline = time.monotonic() + _HEARSAY_S
        while set(names) - self.partition_counts().keys() and time.monotonic() < deadline:
            time.sleep(0.05)


def _is_refusal(error: KafkaError) -> bool:
    # By TLS 1.3 a client's certificate is refused after the handshake, which librdkafka reports as a connection that broke.
    return error.code() in _REFUSALS or "SSL routines" in error.str()


def _locked_out(error: KafkaError, settings: Settings) -> str:
    where, why = settings.kafka_bootstrap_servers, error.str()
    if error.code() == KafkaError._AUTHENTICATION:
        return (
            f"Kafka at {where} does not let user {settings.kafka_sasl_username!r} in ({why}): check TRACEWEIR_KAFKA_SASL_USERNAME, "
            "TRACEWEIR_KAFKA_SASL_PASSWORD and TRACEWEIR_KAFKA_SASL_MECHANISM"
        )
    return (
        f"no TLS connection with Kafka at {where} ({why}): check TRACEWEIR_KAFKA_SSL_CAFILE, which must hold the certificate of the "
        "authority that signed the brokers', and, where they ask for this client's, TRACEWEIR_KAFKA_SSL_CERTFILE and "
        "TRACEWEIR_KAFKA_SSL_KEYFILE"
    )


def _refusal(name: str, error: KafkaError, settings: Settings) -> str:
    hint = ""
    if error.code() == KafkaError.INVALID_REPLICATION_FACTOR:
        hint = (
            f"; set TRACEWEIR_REPLICATION_FACTOR (now {settings.replication_factor}) to the number of brokers or less"
        )
    return f"topic {name!r} could not be created: {error.str()}{hint}"
