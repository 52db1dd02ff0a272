"""What every stage is, and what stages share: the contract, exact counters, the home partition of a key, a bounded work pool.

Nothing here knows Kafka, a clock or a file: a stage is a plain object for one partition. Begin with `base`, which
holds the `Stage` protocol.
"""
