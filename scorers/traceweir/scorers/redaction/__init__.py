"""Redacts secrets and personal identifiers from published text and JSON.

The package does not depend on scores. Start reading with `redaction`, which walks a document; `detection` finds what a text
hides. `secret_formats.tsv` is the table of formats, `secret_names` and `assignments` know secrets by the name before them,
`identifiers` knows numbers and addresses of persons, `encodings` decodes, `custom_patterns` applies the patterns of a
config, and `entities` is where a recogniser of names takes part.
"""
