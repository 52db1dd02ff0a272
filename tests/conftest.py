"""Fixtures for every test."""

from tests.support.kafka import embedded_broker, kafka

__all__ = ["embedded_broker", "kafka"]
