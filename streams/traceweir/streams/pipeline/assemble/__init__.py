"""Contains the assemble stage, which joins events and traces into sessions and closes each session once.

The package works on bytes, table rows and a time that callers pass in, and does not know Kafka. Begin with `stage`;
`parse` validates records, `open_session` and `closed_sessions` hold the sessions.
"""
