"""Requests to a cluster about its brokers and topics: Apache Kafka or the embedded broker."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    ClusterMetadata,
    ConfigResource,
    NewTopic,
    ResourceType,
    TopicDescription,
)

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import CleanupPolicy
from traceweir.streams.worker.kafka import embedded_broker
from traceweir.streams.worker.kafka.client_options import confluent_options
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError, TopicsRefusedError
from traceweir.streams.worker.kafka.topic_options import FoundTopic, options_at_creation

REQUEST_TIMEOUT_S = 10.0
"""Time limit for each answer of a broker, unless the caller sets one."""
METADATA_DELAY_S = 30.0
"""Time limit until every broker knows a topic that the controller has created."""
_FIRST_LOOK_S = 1.0
"""Time in seconds until the first look whether a broker has refused this user, which would be tried again otherwise."""
_ASK_AGAIN_AFTER_S = 0.1
_WAITING = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT)
"""Codes of a broker that does not know a new topic yet, or has not answered in time."""
_REFUSALS = (KafkaError._AUTHENTICATION, KafkaError._SSL)
_NOT_AS_ASKED = (KafkaError.POLICY_VIOLATION, KafkaError.INVALID_CONFIG)
"""Codes of a cluster that refuses an option of a new topic."""
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""The id of zeros, in base 64, that a broker without ids returns."""


class Cluster:
    """Requests to a cluster: Apache Kafka or the embedded broker."""

    def __init__(self, settings: Settings, timeout_s: float | None = None) -> None:
        """Stores the settings, and the time limit for each answer in seconds (None: `REQUEST_TIMEOUT_S`)."""
        self._settings = settings
        self._timeout_s = REQUEST_TIMEOUT_S if timeout_s is None else timeout_s
        self._errors: list[KafkaError] = []
        # The callback collects errors for Traceweir's message; librdkafka would also write them to stderr.
        self._options = confluent_options(settings) | {"log_level": 0, "error_cb": self._errors.append}
        try:
            self._client = AdminClient(self._options)
        except KafkaException as error:
            # An invalid TLS file, or an option that this build of librdkafka lacks.
            raise KafkaUnreachableError(f"Kafka's client does not start: {error.args[0].str()}") from error
        self._embedded: bool | None = None
        self.unreadable: set[str] = set()
        """Names of the topics whose options this user is not allowed to read."""

    @property
    def embedded(self) -> bool:
        """Whether the cluster is an embedded broker, whose topics have neither options nor copies."""
        if self._embedded is None:
            self.metadata()
        return bool(self._embedded)

    def metadata(self, timeout_s: float | None = None) -> ClusterMetadata:
        """Returns the brokers and all topics.

        Raises:
            KafkaUnreachableError: no broker answered within `timeout_s` seconds (None: the usual limit).
        """
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        deadline = time.monotonic() + timeout_s
        look_s = _FIRST_LOOK_S
        while True:
            left = deadline - time.monotonic()
            try:
                metadata = self._client.list_topics(timeout=max(0.0, min(left, look_s)))
                if metadata.brokers:
                    break
                if left <= _FIRST_LOOK_S:
                    raise KafkaUnreachableError(
                        f"a Kafka node at {self._settings.kafka_bootstrap_servers} answers, and has named no broker for "
                        f"{timeout_s:g} s: the node has lost its cluster, or has just started. Check that the brokers and "
                        "their controllers run"
                    )
                time.sleep(_ASK_AGAIN_AFTER_S)
            except KafkaException as error:
                # Passes the collected errors to the callback.
                self._client.poll(0)
                refused = next(filter(_is_refusal, self._errors), None)
                # A retry of librdkafka would be refused again.
                if refused is not None:
                    raise KafkaUnreachableError(_locked_out(refused, self._settings)) from error
                if left <= look_s:
                    reason = (self._errors or error.args)[0].str()
                    raise KafkaUnreachableError(
                        f"no Kafka broker answered at {self._settings.kafka_bootstrap_servers} within {timeout_s:g} s ({reason}): "
                        "start a broker (`docker compose up`, or `traceweir broker` for a trial), or set "
                        "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS"
                    ) from error
                # A distant broker needs longer than the first look for each answer.
                look_s *= 2
        self._embedded = embedded_broker.is_embedded(metadata.cluster_id)
        return metadata

    def partition_counts(self) -> dict[str, int]:
        """Returns the number of partitions of each topic."""
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
        """Returns the options of those of these topics that exist; none for an embedded broker, which has no options.

        A topic whose options this user is not allowed to read is added to `unreadable`.
        """
        names = [*names]
        if self.embedded:
            return {}
        deadline = time.monotonic() + METADATA_DELAY_S
        while names:
            asked = [ConfigResource(ResourceType.TOPIC, name) for name in names]
            try:
                answers = self._client.describe_configs(asked, request_timeout=self._timeout_s)
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
                if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    # A topic that is not new was deleted meanwhile.
                    topics = self.metadata().topics
                    names = [name for name in names if name in topics]
            else:
                return found
        return {}

    def topic_ids(self, names: Collection[str], metadata: ClusterMetadata | None = None) -> dict[str, str]:
        """Returns the ids of those of these topics that exist, as `topic_admin.topic_ids` says.

        Who has just asked for the metadata passes it on.
        """
        metadata = metadata or self.metadata()
        known = [name for name in names if name in metadata.topics]
        if self.embedded or not known:
            return dict.fromkeys(known, metadata.cluster_id)
        found = {name: str(each.topic_id) for name, each in self._described(known, "the ids of the topics").items()}
        return {name: topic_id for name, topic_id in found.items() if topic_id != _NO_ID}

    def not_writable(self, names: Collection[str]) -> list[str]:
        """Returns those of these topics that exist and on which this user lacks the right Write.

        Brokers that do not say it count as allowing everything: they have no access control, or are embedded.
        """
        if self.embedded or not names:
            return []
        described = self._described(names, "the rights on the topics", include_authorized_operations=True)
        rights = {name: each.authorized_operations for name, each in described.items()}
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
            answer = self._client.describe_configs([asked], request_timeout=self._timeout_s)[asked].result()
        except KafkaException:
            return {}
        return {name: entry.value for name, entry in answer.items()}

    def delete(self, names: Collection[str]) -> None:
        """Deletes those of these topics that exist.

        Raises:
            TopicsRefusedError: a topic could not be deleted.
        """
        found = [name for name in names if name in self.metadata().topics]
        if not found:
            return
        refusals = []
        for name, answer in self._client.delete_topics(found, request_timeout=self._timeout_s).items():
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
                creator = AdminClient(self._options | {"allow.auto.create.topics": True})
                # A request by name creates the topic.
                for name in wanted:
                    creator.list_topics(name, timeout=self._timeout_s)
            except KafkaException as error:
                raise self._no_answer("the topics", error) from error
            return set(), {}
        settings = self._settings
        copies = settings.replication_factor
        retention_days = settings.topics.retention_days() if retention_days is None else retention_days
        asked = {
            name: NewTopic(
                name,
                settings.partitions,
                copies,
                config=options_at_creation(policy, retention_days.get(name), copies),
            )
            for name, policy in wanted.items()
        }
        made = set()
        refusals = {}
        for name, answer in self._client.create_topics([*asked.values()], request_timeout=self._timeout_s).items():
            try:
                answer.result()
                made.add(name)
            except KafkaException as error:
                # Another process was faster.
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    refusals[name] = _refusal(asked[name], error.args[0], settings)
        self._wait_for(wanted.keys() - refusals.keys())
        return made, refusals

    def _described(self, names: Collection[str], what: str, **options: bool) -> dict[str, TopicDescription]:
        """Returns the descriptions of those of these topics that exist."""
        found = {}
        asked = self._client.describe_topics(TopicCollection(list(names)), request_timeout=self._timeout_s, **options)
        for name, answer in asked.items():
            try:
                found[name] = answer.result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise self._no_answer(what, error) from error
        return found

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
    where = settings.kafka_bootstrap_servers
    why = error.str()
    if error.code() == KafkaError._AUTHENTICATION and settings.kafka_uses_tokens:
        return (
            f"Kafka at {where} refuses the token of {settings.kafka_oauth_provider} ({why}): check that the brokers trust its issuer, "
            "and that it has the audience and the scope that they require"
        )
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


def _refusal(asked: NewTopic, error: KafkaError, settings: Settings) -> str:
    hint = ""
    if error.code() == KafkaError.INVALID_REPLICATION_FACTOR:
        hint = (
            f"; set TRACEWEIR_REPLICATION_FACTOR (now {settings.replication_factor}) to the number of brokers or less"
        )
    if error.code() in _NOT_AS_ASKED:
        options = ", ".join(f"{name}={value}" for name, value in asked.config.items())
        hint = (
            f"; the cluster has rules for topics, and one refuses {asked.replication_factor} copies or one of {options}. "
            f"Create the topic yourself with {asked.num_partitions} partitions, cleanup.policy={asked.config['cleanup.policy']} "
            "and what the cluster accepts; `traceweir topics check` then names what differs"
        )
    return f"topic {asked.topic!r} could not be created: {error.str()}{hint}"
