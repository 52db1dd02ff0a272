"""Metrics of a worker: what it has committed, and its present state, for Prometheus and over OTLP."""
