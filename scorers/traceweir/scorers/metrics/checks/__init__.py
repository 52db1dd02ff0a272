"""Checks an agent's work by rules: no judge, no reference, no money."""
