"""Metrics that ask no model: one file for each, and novelty.

They know schemas, the scorer contract and `traceweir.scorers.text`, and no clock, network or Kafka. Begin with any
of them: `latency` is the shortest, `trace_value` the one that the gate decides by.
"""
