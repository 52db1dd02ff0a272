"""Runs stages on the partitions that a worker owns: lanes, checkpoints, restoring state, watchdogs, health.

The package knows Faust and Kafka through `traceweir.streams.worker.kafka`, and stages only by their contract. Begin
with `checkpoint`; a `lane` is one owned partition, and a `delivery` sends a checkpoint to Kafka.
"""
