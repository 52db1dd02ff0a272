"""Fixtures and settings for every test."""

import signal

import hypothesis
from tests.support.command_line import run
from tests.support.kafka import certificates, embedded_broker, kafka, secured_kafka

__all__ = ["certificates", "embedded_broker", "kafka", "run", "secured_kafka"]

# A deadline would make speed a claim of the tests.
hypothesis.settings.register_profile("traceweir", deadline=None)
hypothesis.settings.load_profile("traceweir")

# A shell lets its background jobs ignore SIGINT, and processes inherit this: a command under test would never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
