"""Reads the evaluation configs of the topic `configs`, and chooses the config of a session. Knows no Kafka.

A config in effect is named by the digest of its document (`config_id`), and not by the `config_digest` of its scores: the
latter depends on the version of Traceweir, and does not cover budgets and timeouts of judges.
"""
