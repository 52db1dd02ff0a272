"""Scores sessions in a subprocess.

This package knows scorers, judges and embedders, but no stage and no Kafka topic. Begin with `session_scoring`, which
scores a session; `supervisor` starts and replaces the subprocess (`process`, `child`, `protocol`), and `quarantine`
retries the sessions that were in flight when a subprocess died.
"""
