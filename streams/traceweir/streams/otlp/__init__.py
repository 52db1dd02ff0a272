"""Decodes OTLP requests, in protobuf and in JSON, to spans and log records.

Knows nothing of what agents write into spans, no stage, no Kafka and no CLI. Begin at `requests`.
"""
