"""The score stage: scores every closed session by the config, out of order, and hands its traces on as candidates.

It knows no Kafka and no scorer; what scores a session is a function that it is given
(`traceweir.streams.scoring`). Begin with `stage`; `offset_tracker` and `revision_queue` keep order,
`judge_retries` asks a judge again later.
"""
