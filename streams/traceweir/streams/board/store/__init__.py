"""Keeps what the output topics contain in a database: scores, sessions, accepted traces and dead letters.

Rows and the offsets of their records are written in one transaction, so that a consumer that starts again at the stored
offsets stores every record exactly once.
"""
