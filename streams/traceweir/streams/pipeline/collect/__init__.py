"""The collect stage, which turns OpenTelemetry spans into invocation events and traces.

May know `stages`, `otlp`, `spans`, the settings and the topics; knows no Kafka and no other stage. Begin at `stage`.
"""
