"""Names the mark by which a judge's call is told from the work of an agent, wherever spans of it come from."""

JUDGE_MARK = "traceweir=judge"
"""The member of `tracestate` that a call of a judge carries, and with it the spans of the gateway that answers."""
