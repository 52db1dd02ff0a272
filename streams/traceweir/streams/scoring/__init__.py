"""Scores one session: the session, the judges it asks, its config, the embedder, and the process around all of these.

May know `base`. Gets a session as bytes and returns scores; knows no stage, no topic and no partition. Begin with
`sessions.session_scoring`; a worker reaches it through `isolation.processes`.
"""
