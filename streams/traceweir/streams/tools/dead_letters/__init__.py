"""Reads dead letters, and sends their records back to the topics that they came from.

This package uses Kafka clients and topics, and imports no stage. Start with `reader`. `replay` sends the record that a
dead letter keeps; `originals` fetches a record that was too large to keep; `mending` writes dead letters as lines that
a person can edit, and reads these lines.
"""
