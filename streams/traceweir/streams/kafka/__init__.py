"""Where Traceweir touches Kafka clients and Faust: batches, rebalances, topics, single records, the embedded broker.

It knows no stage. Begin with `faust_adapter`, which names every place where Faust is entered; `topic_admin`
creates and checks topics.
"""
