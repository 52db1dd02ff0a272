"""Input formats of files and frames, and what turns each into traces and events.

It knows no stage, no Kafka and no command line. Begin with `base`, the contract of a format; each format is one module
and one line in `registry`, and `files` goes from a file's name to its records.
"""
