"""Receives OTLP over HTTP and gRPC, and writes the requests to Kafka, for agents without an OpenTelemetry Collector.

Begin at `receiver`, which does the work of a request whatever its transport; `server` runs the process. Knows no stage
and no convention about agents.
"""
