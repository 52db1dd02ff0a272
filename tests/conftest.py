"""Fixtures and settings for every test."""

import hypothesis
from tests.support.command_line import run
from tests.support.kafka import certificates, embedded_broker, kafka, secured_kafka

__all__ = ["certificates", "embedded_broker", "kafka", "run", "secured_kafka"]

# A deadline would make speed a claim of the tests.
hypothesis.settings.register_profile("traceweir", deadline=None)
hypothesis.settings.load_profile("traceweir")
