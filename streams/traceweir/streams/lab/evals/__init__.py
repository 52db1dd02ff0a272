"""Scores recorded sessions against eval sets, for `traceweir eval` and the pytest plugin.

This package uses formats and scoring, and Kafka only to read recorded sessions. Begin with `evaluate`; `recordings`
reads sessions, `results` holds the outcome, `text` and `junit` format the outcome, `json_text` parses lenient JSON.
"""
