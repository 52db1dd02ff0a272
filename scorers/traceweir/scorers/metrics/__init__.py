"""Contains the metrics that ask no judge, with a file for each metric, and the novelty cache.

The metrics import schemas, the scorer contract and `traceweir.scorers.text`, and use no clock, network or Kafka. Start
reading with `latency`, the shortest metric, or with `trace_value`, the value that the gate compares with its
threshold.
"""
