"""What runs stages on partitions that a worker owns: lanes, checkpoints, restoring state, watchdogs, health.

It knows Faust and Kafka through `traceweir.streams.kafka`, and stages only by their contract. Begin with
`checkpoint`; a `lane` is one owned partition, a `delivery` is how a checkpoint leaves the process.
"""
