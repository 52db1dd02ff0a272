"""Runs the stages without Kafka, in memory. Users import it as `traceweir.streams.testing`, which lists its names.

Begin with `flow`, which runs the lanes of a worker; `builders` returns valid records.
"""
