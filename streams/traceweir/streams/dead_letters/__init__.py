"""Reading dead letters, and sending them back to where they came from.

It knows Kafka clients and topics, and no stage. Begin with `reader`; `replay` sends what a dead letter keeps,
`originals` fetches what was too large to be kept.
"""
