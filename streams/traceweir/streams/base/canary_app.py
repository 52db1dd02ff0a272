"""Names the app of the sessions that `traceweir canary` sends."""

CANARY_APP = "traceweir-canary"
"""The app of a canary's sessions, by which scores of it can be told from those of agents."""
