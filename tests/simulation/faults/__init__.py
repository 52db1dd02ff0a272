"""The faults of a simulation: what they are, how often they are drawn, and what they do to the world."""
