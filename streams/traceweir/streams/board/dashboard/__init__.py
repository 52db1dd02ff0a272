"""Feeds the results store from Kafka, and serves what it contains as JSON. Begin with `server`."""
