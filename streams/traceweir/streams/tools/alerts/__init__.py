"""Runs rules of alerts over scores. Begin with `replay`."""
