"""How one session is scored, and the subprocess in which that happens.

It may know scorers, judges and embedders, and neither a stage nor Kafka topics. Begin with `session_scoring` for
what is done with a session; `supervisor` starts and replaces the subprocess (`process`, `child`, `protocol`), and
`quarantine` tries sessions that killed one.
"""
