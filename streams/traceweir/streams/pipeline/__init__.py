"""The stages: collect, assemble, score, gate.

May know `base`, `scoring` and `intake`. A stage is a plain object for one partition; it knows no Kafka, no clock and no
other stage. Begin with `topology`, which says what each stage reads and writes and builds it; then read
`assemble.stage`, `score.stage` and `gate.stage`.
"""
