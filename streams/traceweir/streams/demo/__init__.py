"""The demo: simulated agents, the whole path on the embedded broker, and a count of what must come out."""
