"""Secrets and identifiers are taken out of what is published.

It knows text and JSON, and nothing of scores. Begin with `redaction`; `custom_patterns` are the ones that a config
adds.
"""
