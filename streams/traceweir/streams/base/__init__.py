"""The ground: settings, names of topics, clock, logs, the contract of a stage, statistics.

May know `traceweir.schemas` and `traceweir.scorers`, and no other wing. Kafka's clients and Faust are not here, nor in the
wings `intake`, `scoring` and `pipeline`. Begin with `settings` and `topics`; `stages.base` defines what a stage is.
"""
