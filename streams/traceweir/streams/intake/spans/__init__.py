"""Reads what agents did from their OpenTelemetry spans. Knows no encoding of OTLP, no stage, no Kafka and no CLI.

Begin at `span`, the input of everything here.
"""
