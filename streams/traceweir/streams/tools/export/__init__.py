"""Sends scores and decisions from the topic `results` to other systems: at least once, in the order of each session."""
