"""Adapts Kafka clients and Faust: batches, rebalances, topics, single records, the embedded broker.

The package knows no stage. Begin with `faust_adapter`, which passes the records of Faust's consumer on; `pinned_parts`
lists the private parts of Faust that Traceweir uses, `partition_table` has the rows in RocksDB, and `topic_admin` creates
and checks topics.
"""
