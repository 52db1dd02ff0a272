"""Records what a worker does with a session as spans of OpenTelemetry, linked to the traces of the producers.

The spans of one segment of a session are one trace. Ids of traces and spans are derived from the session, so that the
stages need no common state, and work that is repeated after a crash repeats its ids.
"""
