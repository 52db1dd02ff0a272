"""Defines the `Stage` protocol and what stages share: exact counters, the partitioner, a bounded work pool.

A stage is a plain object for one partition. This package uses no Kafka client, no clock and no file. Start with
`base`, which defines the `Stage` protocol.
"""
