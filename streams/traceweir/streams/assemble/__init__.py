"""The assemble stage: joins events and traces into sessions, and closes each session once.

It knows bytes, rows and time as an argument, and no Kafka. Begin with `stage`; `parse` says what a record must
look like, `open_session` and `closed_sessions` hold what `stage` joins.
"""
