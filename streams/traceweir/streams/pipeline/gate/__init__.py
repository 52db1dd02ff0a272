"""Contains the gate stage, which decides on every candidate in the order of its novelty scope, and publishes traces.

The package knows the scorers for novelty, trace value and redaction, and does not know Kafka. Begin with `stage`;
`novelty_scopes` holds the vectors and decisions of each scope, and `presidio` finds names in what is published.
"""
