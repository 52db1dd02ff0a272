"""Redacts secrets and personal identifiers from published text and JSON.

The package does not depend on scores. Start reading with `redaction`; `custom_patterns` applies the patterns of a
config.
"""
