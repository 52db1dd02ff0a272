"""Contains the score stage, which scores closed sessions in any order and sends their traces to the gate as candidates.

The package knows neither Kafka nor a scorer: the stage gets the function that scores a session as an argument
(`traceweir.streams.scoring.sessions`). Begin with `stage`; `offset_tracker` and `revision_queue` keep the order, and
`judge_retries` schedules sessions again after a judge was unavailable.
"""
