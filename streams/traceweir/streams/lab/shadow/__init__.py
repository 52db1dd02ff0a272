"""Scores the sessions of a topic again with another config, beside the live workers: a shadow.

A shadow is an application of its own: its group, changelog and topics have its name. It reads the topic `sessions` and
writes only `results.shadow.NAME` and its internal topics. Start with `run`.
"""
