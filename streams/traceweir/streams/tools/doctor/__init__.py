"""Checks whether everything around a worker is as it should be: Kafka, this machine, models, and what agents send."""
