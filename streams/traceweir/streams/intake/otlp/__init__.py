"""Decodes OTLP, the format in which OpenTelemetry sends spans and log records, in protobuf and in the Collector's JSON.

Begin at `slices`, which splits a request by trace id, and `decoding`, which decodes what a slice holds. Knows no
convention about agents, no stage, no Kafka and no CLI.
"""
