"""Input formats of files and frames, and what turns each into traces and events.

It knows no stage, no Kafka and no command line. Begin with `records`, which goes from a file to the records in it.
"""
