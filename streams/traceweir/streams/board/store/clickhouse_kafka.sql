-- ClickHouse reads results and sessions from Kafka by itself, into the tables of clickhouse_schema.sql.
-- Write your brokers and topics into the settings. Use this or `traceweir dashboard` as the writer of a database.

CREATE TABLE IF NOT EXISTS unread_records (topic LowCardinality(String), `partition` Int64, `offset` Int64, written_at DateTime64(6, 'UTC'), error String, record String CODEC(ZSTD(3)))
ENGINE = ReplacingMergeTree PARTITION BY toYYYYMM(written_at) ORDER BY (topic, `partition`, `offset`, written_at);

CREATE TABLE results_queue (record String) ENGINE = Kafka
SETTINGS
    kafka_broker_list = 'localhost:9092',
    kafka_topic_list = 'traceweir.results',
    kafka_group_name = 'clickhouse-results',
    kafka_format = 'RawBLOB',
    -- A record that cannot be parsed is a row with its error, and does not stop the others.
    kafka_handle_error_mode = 'stream',
    -- The rows of one consumer are one insert, whose sums are computed together.
    kafka_num_consumers = 1,
    kafka_max_block_size = 65536,
    kafka_flush_interval_ms = 1000;

CREATE MATERIALIZED VIEW results_errors TO unread_records AS SELECT
    'results' AS topic, toInt64(_partition) AS `partition`, toInt64(_offset) AS `offset`, fromUnixTimestamp64Milli(toInt64(coalesce(toUnixTimestamp64Milli(_timestamp_ms), 0)), 'UTC') AS `written_at`,
    if(_error != '', _error, 'it is not what a worker writes there') AS error,
    substring(if(_error != '', _raw_message, record), 1, 4000) AS record
FROM results_queue
WHERE _error != '' OR NOT (isValidJSON(record) AND JSONExtractString(record, 'session_id') != '' AND JSONExtractString(record, 'result_id') != '' AND isNotNull(fromUnixTimestamp64Milli(toInt64(coalesce(toUnixTimestamp64Milli(_timestamp_ms), 0)), 'UTC')) AND isNotNull(parseDateTime64BestEffortOrNull(JSONExtractString(record, 'occurred_at'), 6, 'UTC')) AND isNotNull(parseDateTime64BestEffortOrNull(JSONExtractString(record, 'evaluated_at'), 6, 'UTC')));

CREATE MATERIALIZED VIEW results_reader TO new_results AS SELECT
    fromUnixTimestamp64Milli(toInt64(coalesce(toUnixTimestamp64Milli(_timestamp_ms), 0)), 'UTC') AS `written_at`,
    JSONExtract(record, 'session_id', 'String') AS `session_id`,
    JSONExtract(record, 'segment', 'Int64') AS `segment`,
    JSONExtract(record, 'revision', 'Int64') AS `revision`,
    JSONExtract(record, 'attempt', 'Int64') AS `attempt`,
    JSONExtract(record, 'level', 'String') AS `level`,
    JSONExtract(record, 'invocation_id', 'Nullable(String)') AS `invocation_id`,
    JSONExtract(record, 'trace_id', 'Nullable(String)') AS `trace_id`,
    JSONExtract(record, 'metric', 'String') AS `metric`,
    JSONExtract(record, 'value', 'Nullable(Float64)') AS `value`,
    JSONExtract(record, 'threshold', 'Nullable(Float64)') AS `threshold`,
    if(isNull(JSONExtract(record, 'threshold', 'Nullable(Float64)')) AND JSONExtractString(record, 'status') != 'NOT_EVALUATED' AND JSONExtractString(record, 'metric') != 'gate', 'INFORMATIONAL', JSONExtractString(record, 'status')) AS `status`,
    JSONExtract(record, 'not_evaluated_because', 'Nullable(String)') AS `not_evaluated_because`,
    JSONExtract(record, 'rationale', 'String') AS `rationale`,
    JSONExtractRaw(record, 'details') AS `details`,
    JSONExtract(record, 'cost', 'input_tokens', 'Int64') AS `cost_input_tokens`,
    JSONExtract(record, 'cost', 'output_tokens', 'Int64') AS `cost_output_tokens`,
    JSONExtract(record, 'cost', 'usd', 'Float64') AS `cost_usd`,
    JSONExtract(record, 'cost', 'cached', 'Bool') AS `cost_cached`,
    parseDateTime64BestEffortOrNull(JSONExtractString(record, 'started_at'), 6, 'UTC') AS `started_at`,
    parseDateTime64BestEffortOrNull(JSONExtractString(record, 'occurred_at'), 6, 'UTC') AS `occurred_at`,
    parseDateTime64BestEffortOrNull(JSONExtractString(record, 'evaluated_at'), 6, 'UTC') AS `evaluated_at`,
    JSONExtract(record, 'result_id', 'String') AS `result_id`,
    JSONExtract(record, 'scorer_version', 'String') AS `scorer_version`,
    JSONExtract(record, 'config_digest', 'String') AS `config_digest`,
    toInt64(_partition) AS `partition`,
    toInt64(_offset) AS `offset`,
    JSONExtract(record, 'app_name', 'Nullable(String)') AS `app_name`,
    JSONExtract(record, 'agent_name', 'Nullable(String)') AS `agent_name`,
    JSONExtract(record, 'agent_version', 'Nullable(String)') AS `agent_version`,
    JSONExtract(record, 'environment', 'Nullable(String)') AS `environment`,
    JSONExtract(record, 'model', 'Nullable(String)') AS `model`,
    JSONExtract(record, 'user_id', 'Nullable(String)') AS `user_id`,
    nullIf(nullIf(JSONExtractRaw(record, 'labels'), ''), 'null') AS `labels`,
    JSONExtract(record, 'trace_context', 'trace_id', 'Nullable(String)') AS `trace_context_trace_id`,
    JSONExtract(record, 'trace_context', 'span_id', 'Nullable(String)') AS `trace_context_span_id`,
    JSONExtract(record, 'sampling_probability', 'Nullable(Float64)') AS `sampling_probability`,
    JSONExtract(record, 'source', 'Nullable(String)') AS `source`,
    JSONExtract(record, 'cause', 'Nullable(String)') AS `cause`,
    JSONExtract(record, 'judge', 'Nullable(String)') AS `judge`,
    JSONExtract(record, 'category', 'Nullable(String)') AS `category`,
    JSONExtract(record, 'inclusion_probability', 'Nullable(Float64)') AS `inclusion_probability`,
    parseDateTime64BestEffortOrNull(JSONExtractString(record, 'segment_opened_at'), 6, 'UTC') AS `segment_opened_at`,
    JSONExtract(record, 'metric_digest', 'Nullable(String)') AS `metric_digest`
FROM results_queue
WHERE _error = '' AND isValidJSON(record) AND JSONExtractString(record, 'session_id') != '' AND JSONExtractString(record, 'result_id') != '' AND isNotNull(fromUnixTimestamp64Milli(toInt64(coalesce(toUnixTimestamp64Milli(_timestamp_ms), 0)), 'UTC')) AND isNotNull(parseDateTime64BestEffortOrNull(JSONExtractString(record, 'occurred_at'), 6, 'UTC')) AND isNotNull(parseDateTime64BestEffortOrNull(JSONExtractString(record, 'evaluated_at'), 6, 'UTC'));

CREATE TABLE sessions_queue (record String) ENGINE = Kafka
SETTINGS
    kafka_broker_list = 'localhost:9092',
    kafka_topic_list = 'traceweir.sessions',
    kafka_group_name = 'clickhouse-sessions',
    kafka_format = 'RawBLOB',
    -- A record that cannot be parsed is a row with its error, and does not stop the others.
    kafka_handle_error_mode = 'stream',
    -- The rows of one consumer are one insert, whose sums are computed together.
    kafka_num_consumers = 1,
    kafka_max_block_size = 65536,
    kafka_flush_interval_ms = 1000;

CREATE MATERIALIZED VIEW sessions_errors TO unread_records AS SELECT
    'sessions' AS topic, toInt64(_partition) AS `partition`, toInt64(_offset) AS `offset`, fromUnixTimestamp64Milli(toInt64(coalesce(toUnixTimestamp64Milli(_timestamp_ms), 0)), 'UTC') AS `written_at`,
    if(_error != '', _error, 'it is not what a worker writes there') AS error,
    substring(if(_error != '', _raw_message, record), 1, 4000) AS record
FROM sessions_queue
WHERE _error != '' OR NOT (isValidJSON(record) AND JSONExtractString(record, 'session_id') != '' AND isNotNull(fromUnixTimestamp64Milli(toInt64(coalesce(toUnixTimestamp64Milli(_timestamp_ms), 0)), 'UTC')) AND isNotNull(parseDateTime64BestEffortOrNull(JSONExtractString(record, 'first_record_at'), 6, 'UTC')) AND isNotNull(parseDateTime64BestEffortOrNull(JSONExtractString(record, 'last_record_at'), 6, 'UTC')));

CREATE MATERIALIZED VIEW sessions_reader TO sessions AS SELECT
    fromUnixTimestamp64Milli(toInt64(coalesce(toUnixTimestamp64Milli(_timestamp_ms), 0)), 'UTC') AS `written_at`,
    JSONExtract(record, 'session_id', 'String') AS `session_id`,
    JSONExtract(record, 'segment', 'Int64') AS `segment`,
    JSONExtract(record, 'revision', 'Int64') AS `revision`,
    JSONExtract(record, 'closed_because', 'String') AS `closed_because`,
    parseDateTime64BestEffortOrNull(JSONExtractString(record, 'first_record_at'), 6, 'UTC') AS `first_record_at`,
    parseDateTime64BestEffortOrNull(JSONExtractString(record, 'last_record_at'), 6, 'UTC') AS `last_record_at`,
    toInt64(JSONLength(record, 'events')) AS `events`,
    toInt64(JSONLength(record, 'traces')) AS `traces`,
    nullIf(arrayLast(each -> each != '', arrayMap(event -> JSONExtractString(event, 'app_name'), JSONExtractArrayRaw(record, 'events'))), '') AS `app_name`,
    nullIf(arrayLast(each -> each != '', arrayMap(event -> JSONExtractString(event, 'agent_name'), JSONExtractArrayRaw(record, 'events'))), '') AS `agent_name`,
    nullIf(arrayLast(each -> each != '', arrayMap(event -> JSONExtractString(event, 'agent_version'), JSONExtractArrayRaw(record, 'events'))), '') AS `agent_version`,
    nullIf(arrayLast(each -> each != '', arrayMap(event -> JSONExtractString(event, 'environment'), JSONExtractArrayRaw(record, 'events'))), '') AS `environment`,
    nullIf(arrayLast(each -> each != '' AND each != 'unknown', arrayMap(event -> JSONExtractString(event, 'model'), JSONExtractArrayRaw(record, 'events'))), '') AS `model`,
    record AS `document`,
    toInt64(_partition) AS `partition`,
    toInt64(_offset) AS `offset`
FROM sessions_queue
WHERE _error = '' AND isValidJSON(record) AND JSONExtractString(record, 'session_id') != '' AND isNotNull(fromUnixTimestamp64Milli(toInt64(coalesce(toUnixTimestamp64Milli(_timestamp_ms), 0)), 'UTC')) AND isNotNull(parseDateTime64BestEffortOrNull(JSONExtractString(record, 'first_record_at'), 6, 'UTC')) AND isNotNull(parseDateTime64BestEffortOrNull(JSONExtractString(record, 'last_record_at'), 6, 'UTC'));
