"""The gate stage: decides about every candidate, in the order of its novelty scope, and publishes the accepted traces.

It knows the scorers for novelty, trace value and redaction, and no Kafka. Begin with `stage`; `novelty_scopes`
holds the vectors and decisions of each scope.
"""
