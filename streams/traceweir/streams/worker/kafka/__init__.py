"""Adapts Kafka clients and Faust: batches, rebalances, topics, single records, the embedded broker.

The package knows no stage. Begin with `faust_adapter`, which lists every private part of Faust that Traceweir uses;
`topic_admin` creates and checks topics.
"""
