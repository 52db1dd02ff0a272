"""Fixtures and settings for every test."""

import hypothesis
from tests.support.kafka import embedded_broker, kafka

__all__ = ["embedded_broker", "kafka"]

# A deadline would make speed a claim of the tests.
hypothesis.settings.register_profile("tracegate", deadline=None)
hypothesis.settings.load_profile("tracegate")
