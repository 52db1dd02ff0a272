"""An exporter starts while a broker is away, if the others know its consumer group."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.export.group_use import check_group_use
from traceweir.streams.worker.kafka import group_states
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError


class _Brokers:
    """A cluster whose brokers know the group `known`, but for one, which does not answer."""

    def list_topics(self, **_: Any) -> Any:
        return SimpleNamespace(cluster_id="a cluster", topics={})

    def list_consumer_groups(self, **_: Any) -> Any:
        away = KafkaException(KafkaError(KafkaError.BROKER_NOT_AVAILABLE))
        found = SimpleNamespace(valid=[SimpleNamespace(group_id="known")], errors=[away])
        return SimpleNamespace(result=lambda: found)

    def describe_consumer_groups(self, groups: list[str], **_: Any) -> Any:
        members = SimpleNamespace(members=[])
        return {each: SimpleNamespace(result=lambda: members) for each in groups}


def test_a_broker_that_is_away_matters_only_for_a_group_that_the_others_do_not_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_states, "admin_client", lambda _: _Brokers())
    monkeypatch.setattr(group_states, "wait", lambda _: None)
    monkeypatch.setattr(group_states, "members_of", lambda _: [])
    check_group_use(Settings(), "known", "traceweir.alerts")
    with pytest.raises(KafkaUnreachableError):
        check_group_use(Settings(), "new", "traceweir.alerts")
