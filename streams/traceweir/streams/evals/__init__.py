"""Recorded sessions against eval sets: what `traceweir eval` and the pytest plugin do.

It knows formats and scoring, and Kafka only to read recorded sessions back. Begin with `evaluate`; `recordings`
finds the sessions of a case, `results` and `text`, `junit` and `json_text` say how it ended.
"""
