-- Creates the tables of Traceweir's results store in an empty database of ClickHouse.
-- `traceweir dashboard` does the same when TRACEWEIR_STORE is the address of an empty database.
-- Queries need `SETTINGS final = 1`: a record can be written twice, and a later revision replaces a row.

CREATE TABLE IF NOT EXISTS store_version (version UInt64) ENGINE = ReplacingMergeTree ORDER BY version;

CREATE TABLE IF NOT EXISTS owner (epoch UInt64, token String, holder String, since DateTime64(6, 'UTC')) ENGINE = MergeTree ORDER BY epoch;

CREATE TABLE IF NOT EXISTS feed_state (kind LowCardinality(String), topic String, partition Int64, number Int64, text String, version UInt64) ENGINE = ReplacingMergeTree(version) ORDER BY (kind, topic, partition);

CREATE VIEW IF NOT EXISTS unreadable_records AS SELECT topic, number AS n FROM feed_state FINAL WHERE kind = 'unreadable';

CREATE TABLE IF NOT EXISTS results (
    key UInt64 DEFAULT reinterpretAsUInt64(substring(MD5(session_id), 9, 8)),
    version UInt128 DEFAULT bitShiftLeft(toUInt128(least(revision, 4294967295)), 96) + bitShiftLeft(toUInt128(least(attempt, 4294967295)), 64) + bitShiftLeft(toUInt128(least(`offset`, 281474976710655)), 16) + bitShiftLeft(toUInt128(least(`partition`, 65535)), 0),
    opened Date32 DEFAULT if(coalesce(`segment_opened_at` >= toDateTime64('2020-01-01', 6, 'UTC') AND `segment_opened_at` < toDateTime64('2060-01-01', 6, 'UTC'), false), toDate32(assumeNotNull(`segment_opened_at`)), toDate32(0)),
    `written_at` DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    `session_id` String,
    `segment` Int64 CODEC(T64, ZSTD(1)),
    `revision` Int64 CODEC(T64, ZSTD(1)),
    `attempt` Int64 CODEC(T64, ZSTD(1)),
    `level` LowCardinality(String),
    `invocation_id` Nullable(String),
    `trace_id` Nullable(String),
    `metric` LowCardinality(String),
    `value` Nullable(Float64) CODEC(Gorilla, ZSTD(1)),
    `threshold` Nullable(Float64) CODEC(Gorilla, ZSTD(1)),
    `status` LowCardinality(String),
    `not_evaluated_because` LowCardinality(Nullable(String)),
    `rationale` String CODEC(ZSTD(3)),
    `details` String CODEC(ZSTD(3)),
    `cost_input_tokens` Int64 CODEC(T64, ZSTD(1)),
    `cost_output_tokens` Int64 CODEC(T64, ZSTD(1)),
    `cost_usd` Float64 CODEC(Gorilla, ZSTD(1)),
    `cost_cached` Bool,
    `started_at` Nullable(DateTime64(6, 'UTC')) CODEC(Delta, ZSTD(1)),
    `occurred_at` DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    `evaluated_at` DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    `result_id` String,
    `scorer_version` LowCardinality(String),
    `config_digest` LowCardinality(String),
    `partition` Int64 CODEC(T64, ZSTD(1)),
    `offset` Int64 CODEC(T64, ZSTD(1)),
    `app_name` LowCardinality(Nullable(String)),
    `agent_name` LowCardinality(Nullable(String)),
    `agent_version` LowCardinality(Nullable(String)),
    `environment` LowCardinality(Nullable(String)),
    `model` LowCardinality(Nullable(String)),
    `user_id` Nullable(String),
    `labels` Nullable(String) CODEC(ZSTD(3)),
    `trace_context_trace_id` Nullable(String),
    `trace_context_span_id` Nullable(String),
    `sampling_probability` Nullable(Float64) CODEC(Gorilla, ZSTD(1)),
    `source` Nullable(String),
    `cause` LowCardinality(Nullable(String)),
    `judge` LowCardinality(Nullable(String)),
    `category` LowCardinality(Nullable(String)),
    `inclusion_probability` Nullable(Float64) CODEC(Gorilla, ZSTD(1)),
    `segment_opened_at` Nullable(DateTime64(6, 'UTC')) CODEC(Delta, ZSTD(1)),
    `metric_digest` LowCardinality(Nullable(String)),
    INDEX by_time occurred_at TYPE minmax GRANULARITY 1,
    INDEX by_key key TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX by_trace trace_id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX words_of_rationale lowerUTF8(ifNull(rationale, '')) TYPE ngrambf_v1(4, 262144, 2, 0) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version) PARTITION BY toYYYYMM(opened) ORDER BY (opened, key, session_id, result_id);

CREATE TABLE IF NOT EXISTS sessions (
    key UInt64 DEFAULT reinterpretAsUInt64(substring(MD5(session_id), 9, 8)),
    version UInt128 DEFAULT toUInt128(revision),
    opened Date32 DEFAULT if(coalesce(`first_record_at` >= toDateTime64('2020-01-01', 6, 'UTC') AND `first_record_at` < toDateTime64('2060-01-01', 6, 'UTC'), false), toDate32(assumeNotNull(`first_record_at`)), toDate32(0)),
    `written_at` DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    `session_id` String,
    `segment` Int64 CODEC(T64, ZSTD(1)),
    `revision` Int64 CODEC(T64, ZSTD(1)),
    `closed_because` String,
    `first_record_at` DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    `last_record_at` DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    `events` Int64 CODEC(T64, ZSTD(1)),
    `traces` Int64 CODEC(T64, ZSTD(1)),
    `app_name` LowCardinality(Nullable(String)),
    `agent_name` LowCardinality(Nullable(String)),
    `agent_version` LowCardinality(Nullable(String)),
    `environment` LowCardinality(Nullable(String)),
    `model` LowCardinality(Nullable(String)),
    `document` Nullable(String) CODEC(ZSTD(3)),
    `partition` Int64 CODEC(T64, ZSTD(1)),
    `offset` Int64 CODEC(T64, ZSTD(1)),
    INDEX by_time last_record_at TYPE minmax GRANULARITY 1,
    INDEX by_key key TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX words_of_session_id lowerUTF8(ifNull(session_id, '')) TYPE ngrambf_v1(4, 262144, 2, 0) GRANULARITY 1,
    INDEX words_of_document lowerUTF8(ifNull(document, '')) TYPE ngrambf_v1(4, 262144, 2, 0) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version) PARTITION BY toYYYYMM(opened) ORDER BY (opened, key, session_id, segment);

CREATE TABLE IF NOT EXISTS network (
    key UInt64 DEFAULT reinterpretAsUInt64(substring(MD5(trace_id), 9, 8)),
    version UInt128 DEFAULT toUInt128(`offset`),
    `written_at` DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    `trace_id` String,
    `accepted` Bool,
    `document` Nullable(String) CODEC(ZSTD(3)),
    `partition` Int64 CODEC(T64, ZSTD(1)),
    `offset` Int64 CODEC(T64, ZSTD(1)),
    INDEX by_time written_at TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version) ORDER BY (key, trace_id);

CREATE TABLE IF NOT EXISTS dead_letters (
    key UInt64 DEFAULT reinterpretAsUInt64(substring(MD5(letter_id), 9, 8)),
    version UInt128 DEFAULT toUInt128(`offset`),
    opened Date32 DEFAULT if(coalesce(`written_at` >= toDateTime64('2020-01-01', 6, 'UTC') AND `written_at` < toDateTime64('2060-01-01', 6, 'UTC'), false), toDate32(assumeNotNull(`written_at`)), toDate32(0)),
    `written_at` DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    `letter_id` String,
    `reason` LowCardinality(String),
    `stage` String,
    `detail` String CODEC(ZSTD(3)),
    `source_topic` String,
    `source_partition` Int64 CODEC(T64, ZSTD(1)),
    `source_offset` Int64 CODEC(T64, ZSTD(1)),
    `record_key` Nullable(String) CODEC(ZSTD(3)),
    `record_value` Nullable(String) CODEC(ZSTD(3)),
    `record_bytes` Int64 CODEC(T64, ZSTD(1)),
    `partition` Int64 CODEC(T64, ZSTD(1)),
    `offset` Int64 CODEC(T64, ZSTD(1)),
    INDEX by_time written_at TYPE minmax GRANULARITY 1,
    INDEX by_key key TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version) PARTITION BY toYYYYMM(opened) ORDER BY (key, letter_id);

CREATE TABLE IF NOT EXISTS replays (
    key UInt64 DEFAULT reinterpretAsUInt64(substring(MD5(letter_id), 9, 8)),
    version UInt128 DEFAULT toUInt128(`offset`),
    `written_at` DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    `letter_id` String,
    `partition` Int64 CODEC(T64, ZSTD(1)),
    `offset` Int64 CODEC(T64, ZSTD(1)),
    INDEX by_time written_at TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version) ORDER BY (key, letter_id);

CREATE TABLE IF NOT EXISTS labels (
    key UInt64 DEFAULT reinterpretAsUInt64(substring(MD5(label_id), 9, 8)),
    version UInt128 DEFAULT toUInt128(`offset`),
    `written_at` DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    `label_id` String,
    `session_id` String,
    `segment` Nullable(Int64) CODEC(T64, ZSTD(1)),
    `revision` Nullable(Int64) CODEC(T64, ZSTD(1)),
    `level` LowCardinality(String),
    `invocation_id` Nullable(String),
    `trace_id` Nullable(String),
    `criterion` String,
    `metric_digest` LowCardinality(Nullable(String)),
    `verdict` Nullable(String),
    `value` Nullable(Float64) CODEC(Gorilla, ZSTD(1)),
    `category` LowCardinality(Nullable(String)),
    `note` Nullable(String),
    `annotator` String,
    `self_declared` Bool,
    `kind` String,
    `drawn` String,
    `inclusion_probability` Nullable(Float64) CODEC(Gorilla, ZSTD(1)),
    `occurred_at` DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    `withdrawn` Bool,
    `partition` Int64 CODEC(T64, ZSTD(1)),
    `offset` Int64 CODEC(T64, ZSTD(1)),
    INDEX by_time occurred_at TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version) ORDER BY (key, label_id);

CREATE TABLE IF NOT EXISTS labelled_scores (
    key UInt64 DEFAULT reinterpretAsUInt64(substring(MD5(session_id), 9, 8)),
    version UInt128 DEFAULT toUInt128(attempt),
    `session_id` String,
    `segment` Int64 CODEC(T64, ZSTD(1)),
    `revision` Int64 CODEC(T64, ZSTD(1)),
    `attempt` Int64 CODEC(T64, ZSTD(1)),
    `level` LowCardinality(String),
    `invocation_id` Nullable(String),
    `trace_id` Nullable(String),
    `metric` LowCardinality(String),
    `value` Nullable(Float64) CODEC(Gorilla, ZSTD(1)),
    `threshold` Nullable(Float64) CODEC(Gorilla, ZSTD(1)),
    `status` LowCardinality(String),
    `occurred_at` DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    `result_id` String,
    `scorer_version` LowCardinality(String),
    `config_digest` LowCardinality(String),
    `app_name` LowCardinality(Nullable(String)),
    `agent_name` LowCardinality(Nullable(String)),
    `agent_version` LowCardinality(Nullable(String)),
    `environment` LowCardinality(Nullable(String)),
    `model` LowCardinality(Nullable(String)),
    `judge` LowCardinality(Nullable(String)),
    `category` LowCardinality(Nullable(String)),
    `inclusion_probability` Nullable(Float64) CODEC(Gorilla, ZSTD(1)),
    `metric_digest` LowCardinality(Nullable(String)),
    INDEX by_time occurred_at TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version) ORDER BY (key, session_id, result_id, revision);

CREATE TABLE IF NOT EXISTS alerts (
    key UInt64 DEFAULT reinterpretAsUInt64(substring(MD5(alert_id), 9, 8)),
    version UInt128 DEFAULT toUInt128(`offset`),
    `written_at` DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    `alert_id` String,
    `state` String,
    `metric` LowCardinality(String),
    `level` LowCardinality(String),
    `onset_from` DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    `onset_to` DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    `occurred_at` DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    `document` String CODEC(ZSTD(3)),
    `partition` Int64 CODEC(T64, ZSTD(1)),
    `offset` Int64 CODEC(T64, ZSTD(1)),
    INDEX by_time written_at TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version) ORDER BY (key, alert_id);

CREATE TABLE IF NOT EXISTS new_results (
    key UInt64 DEFAULT reinterpretAsUInt64(substring(MD5(session_id), 9, 8)),
    version UInt128 DEFAULT bitShiftLeft(toUInt128(least(revision, 4294967295)), 96) + bitShiftLeft(toUInt128(least(attempt, 4294967295)), 64) + bitShiftLeft(toUInt128(least(`offset`, 281474976710655)), 16) + bitShiftLeft(toUInt128(least(`partition`, 65535)), 0),
    opened Date32 DEFAULT if(coalesce(`segment_opened_at` >= toDateTime64('2020-01-01', 6, 'UTC') AND `segment_opened_at` < toDateTime64('2060-01-01', 6, 'UTC'), false), toDate32(assumeNotNull(`segment_opened_at`)), toDate32(0)),
    `written_at` DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    `session_id` String,
    `segment` Int64 CODEC(T64, ZSTD(1)),
    `revision` Int64 CODEC(T64, ZSTD(1)),
    `attempt` Int64 CODEC(T64, ZSTD(1)),
    `level` LowCardinality(String),
    `invocation_id` Nullable(String),
    `trace_id` Nullable(String),
    `metric` LowCardinality(String),
    `value` Nullable(Float64) CODEC(Gorilla, ZSTD(1)),
    `threshold` Nullable(Float64) CODEC(Gorilla, ZSTD(1)),
    `status` LowCardinality(String),
    `not_evaluated_because` LowCardinality(Nullable(String)),
    `rationale` String CODEC(ZSTD(3)),
    `details` String CODEC(ZSTD(3)),
    `cost_input_tokens` Int64 CODEC(T64, ZSTD(1)),
    `cost_output_tokens` Int64 CODEC(T64, ZSTD(1)),
    `cost_usd` Float64 CODEC(Gorilla, ZSTD(1)),
    `cost_cached` Bool,
    `started_at` Nullable(DateTime64(6, 'UTC')) CODEC(Delta, ZSTD(1)),
    `occurred_at` DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    `evaluated_at` DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    `result_id` String,
    `scorer_version` LowCardinality(String),
    `config_digest` LowCardinality(String),
    `partition` Int64 CODEC(T64, ZSTD(1)),
    `offset` Int64 CODEC(T64, ZSTD(1)),
    `app_name` LowCardinality(Nullable(String)),
    `agent_name` LowCardinality(Nullable(String)),
    `agent_version` LowCardinality(Nullable(String)),
    `environment` LowCardinality(Nullable(String)),
    `model` LowCardinality(Nullable(String)),
    `user_id` Nullable(String),
    `labels` Nullable(String) CODEC(ZSTD(3)),
    `trace_context_trace_id` Nullable(String),
    `trace_context_span_id` Nullable(String),
    `sampling_probability` Nullable(Float64) CODEC(Gorilla, ZSTD(1)),
    `source` Nullable(String),
    `cause` LowCardinality(Nullable(String)),
    `judge` LowCardinality(Nullable(String)),
    `category` LowCardinality(Nullable(String)),
    `inclusion_probability` Nullable(Float64) CODEC(Gorilla, ZSTD(1)),
    `segment_opened_at` Nullable(DateTime64(6, 'UTC')) CODEC(Delta, ZSTD(1)),
    `metric_digest` LowCardinality(Nullable(String))
)
ENGINE = Null;

CREATE TABLE IF NOT EXISTS replaced_results (
    key UInt64 DEFAULT reinterpretAsUInt64(substring(MD5(session_id), 9, 8)),
    version UInt128 DEFAULT bitShiftLeft(toUInt128(least(revision, 4294967295)), 96) + bitShiftLeft(toUInt128(least(attempt, 4294967295)), 64) + bitShiftLeft(toUInt128(least(`offset`, 281474976710655)), 16) + bitShiftLeft(toUInt128(least(`partition`, 65535)), 0),
    opened Date32 DEFAULT if(coalesce(`segment_opened_at` >= toDateTime64('2020-01-01', 6, 'UTC') AND `segment_opened_at` < toDateTime64('2060-01-01', 6, 'UTC'), false), toDate32(assumeNotNull(`segment_opened_at`)), toDate32(0)),
    `written_at` DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    `session_id` String,
    `segment` Int64 CODEC(T64, ZSTD(1)),
    `revision` Int64 CODEC(T64, ZSTD(1)),
    `attempt` Int64 CODEC(T64, ZSTD(1)),
    `level` LowCardinality(String),
    `invocation_id` Nullable(String),
    `trace_id` Nullable(String),
    `metric` LowCardinality(String),
    `value` Nullable(Float64) CODEC(Gorilla, ZSTD(1)),
    `threshold` Nullable(Float64) CODEC(Gorilla, ZSTD(1)),
    `status` LowCardinality(String),
    `not_evaluated_because` LowCardinality(Nullable(String)),
    `rationale` String CODEC(ZSTD(3)),
    `details` String CODEC(ZSTD(3)),
    `cost_input_tokens` Int64 CODEC(T64, ZSTD(1)),
    `cost_output_tokens` Int64 CODEC(T64, ZSTD(1)),
    `cost_usd` Float64 CODEC(Gorilla, ZSTD(1)),
    `cost_cached` Bool,
    `started_at` Nullable(DateTime64(6, 'UTC')) CODEC(Delta, ZSTD(1)),
    `occurred_at` DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    `evaluated_at` DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    `result_id` String,
    `scorer_version` LowCardinality(String),
    `config_digest` LowCardinality(String),
    `partition` Int64 CODEC(T64, ZSTD(1)),
    `offset` Int64 CODEC(T64, ZSTD(1)),
    `app_name` LowCardinality(Nullable(String)),
    `agent_name` LowCardinality(Nullable(String)),
    `agent_version` LowCardinality(Nullable(String)),
    `environment` LowCardinality(Nullable(String)),
    `model` LowCardinality(Nullable(String)),
    `user_id` Nullable(String),
    `labels` Nullable(String) CODEC(ZSTD(3)),
    `trace_context_trace_id` Nullable(String),
    `trace_context_span_id` Nullable(String),
    `sampling_probability` Nullable(Float64) CODEC(Gorilla, ZSTD(1)),
    `source` Nullable(String),
    `cause` LowCardinality(Nullable(String)),
    `judge` LowCardinality(Nullable(String)),
    `category` LowCardinality(Nullable(String)),
    `inclusion_probability` Nullable(Float64) CODEC(Gorilla, ZSTD(1)),
    `segment_opened_at` Nullable(DateTime64(6, 'UTC')) CODEC(Delta, ZSTD(1)),
    `metric_digest` LowCardinality(Nullable(String)),
    INDEX by_key key TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = ReplacingMergeTree PARTITION BY toYYYYMM(opened) ORDER BY (opened, key, session_id, result_id, version);

CREATE TABLE IF NOT EXISTS result_records (opened Date32, key UInt64, result_id String, version UInt128 CODEC(ZSTD(1)), minute DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)), `partition` Int64 CODEC(T64, ZSTD(1)), `offset` Int64 CODEC(T64, ZSTD(1)))
ENGINE = ReplacingMergeTree PARTITION BY toYYYYMM(opened) ORDER BY (opened, key, result_id, version);

CREATE MATERIALIZED VIEW IF NOT EXISTS new_results_to_results TO results AS SELECT opened, key, version, `written_at`, `session_id`, `segment`, `revision`, `attempt`, `level`, `invocation_id`, `trace_id`, `metric`, `value`, `threshold`, `status`, `not_evaluated_because`, `rationale`, `details`, `cost_input_tokens`, `cost_output_tokens`, `cost_usd`, `cost_cached`, `started_at`, `occurred_at`, `evaluated_at`, `result_id`, `scorer_version`, `config_digest`, `partition`, `offset`, `app_name`, `agent_name`, `agent_version`, `environment`, `model`, `user_id`, `labels`, `trace_context_trace_id`, `trace_context_span_id`, `sampling_probability`, `source`, `cause`, `judge`, `category`, `inclusion_probability`, `segment_opened_at`, `metric_digest` FROM new_results;

CREATE MATERIALIZED VIEW IF NOT EXISTS new_results_to_records TO result_records AS SELECT opened, key, result_id, version, fromUnixTimestamp64Micro(toUnixTimestamp64Micro(occurred_at) - positiveModulo(toUnixTimestamp64Micro(occurred_at), 60000000), 'UTC') AS minute, `partition`, `offset` FROM new_results;

CREATE MATERIALIZED VIEW IF NOT EXISTS new_results_to_replaced TO replaced_results AS SELECT opened, key, version, `written_at`, `session_id`, `segment`, `revision`, `attempt`, `level`, `invocation_id`, `trace_id`, `metric`, `value`, `threshold`, `status`, `not_evaluated_because`, `rationale`, `details`, `cost_input_tokens`, `cost_output_tokens`, `cost_usd`, `cost_cached`, `started_at`, `occurred_at`, `evaluated_at`, `result_id`, `scorer_version`, `config_digest`, `partition`, `offset`, `app_name`, `agent_name`, `agent_version`, `environment`, `model`, `user_id`, `labels`, `trace_context_trace_id`, `trace_context_span_id`, `sampling_probability`, `source`, `cause`, `judge`, `category`, `inclusion_probability`, `segment_opened_at`, `metric_digest` FROM (
    SELECT opened, key, version, `written_at`, `session_id`, `segment`, `revision`, `attempt`, `level`, `invocation_id`, `trace_id`, `metric`, `value`, `threshold`, `status`, `not_evaluated_because`, `rationale`, `details`, `cost_input_tokens`, `cost_output_tokens`, `cost_usd`, `cost_cached`, `started_at`, `occurred_at`, `evaluated_at`, `result_id`, `scorer_version`, `config_digest`, `partition`, `offset`, `app_name`, `agent_name`, `agent_version`, `environment`, `model`, `user_id`, `labels`, `trace_context_trace_id`, `trace_context_span_id`, `sampling_probability`, `source`, `cause`, `judge`, `category`, `inclusion_probability`, `segment_opened_at`, `metric_digest` FROM new_results
    UNION ALL SELECT opened, key, version, `written_at`, `session_id`, `segment`, `revision`, `attempt`, `level`, `invocation_id`, `trace_id`, `metric`, `value`, `threshold`, `status`, `not_evaluated_because`, `rationale`, `details`, `cost_input_tokens`, `cost_output_tokens`, `cost_usd`, `cost_cached`, `started_at`, `occurred_at`, `evaluated_at`, `result_id`, `scorer_version`, `config_digest`, `partition`, `offset`, `app_name`, `agent_name`, `agent_version`, `environment`, `model`, `user_id`, `labels`, `trace_context_trace_id`, `trace_context_span_id`, `sampling_probability`, `source`, `cause`, `judge`, `category`, `inclusion_probability`, `segment_opened_at`, `metric_digest` FROM results WHERE (opened, key) IN (
    SELECT opened, key FROM (
        SELECT *, max(version) OVER (PARTITION BY opened, key, result_id) AS newest FROM (
            SELECT opened, key, result_id, version, fromUnixTimestamp64Micro(toUnixTimestamp64Micro(occurred_at) - positiveModulo(toUnixTimestamp64Micro(occurred_at), 60000000), 'UTC') AS minute, `partition`, `offset` FROM new_results
            UNION ALL SELECT opened, key, result_id, version, minute, `partition`, `offset` FROM result_records WHERE (opened, key) IN (SELECT opened, key FROM new_results)
        )
    ) WHERE version < newest)
) WHERE (opened, key, result_id, version) IN (
    SELECT opened, key, result_id, version FROM (
        SELECT *, max(version) OVER (PARTITION BY opened, key, result_id) AS newest FROM (
            SELECT opened, key, result_id, version, fromUnixTimestamp64Micro(toUnixTimestamp64Micro(occurred_at) - positiveModulo(toUnixTimestamp64Micro(occurred_at), 60000000), 'UTC') AS minute, `partition`, `offset` FROM new_results
            UNION ALL SELECT opened, key, result_id, version, minute, `partition`, `offset` FROM result_records WHERE (opened, key) IN (SELECT opened, key FROM new_results)
        )
    ) WHERE version < newest);

CREATE TABLE IF NOT EXISTS figure_records (
    minute DateTime64(6, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    `partition` Int64,
    `offset` Int64,
    sign Int8,
    reasons Array(String),
    metric LowCardinality(String),
    level LowCardinality(String),
    config_digest LowCardinality(String),
    scorer_version LowCardinality(String),
    app_name LowCardinality(Nullable(String)),
    agent_name LowCardinality(Nullable(String)),
    agent_version LowCardinality(Nullable(String)),
    environment LowCardinality(Nullable(String)),
    model LowCardinality(Nullable(String)),
    judge LowCardinality(Nullable(String)),
    value Nullable(Float64),
    status LowCardinality(String),
    not_evaluated_because LowCardinality(Nullable(String)),
    cost_input_tokens Int64,
    cost_output_tokens Int64,
    cost_usd Float64
)
ENGINE = ReplacingMergeTree PARTITION BY toYYYYMM(minute) ORDER BY (minute, `partition`, `offset`, sign);

CREATE TABLE IF NOT EXISTS figure_changes AS figure_records ENGINE = Null;

CREATE MATERIALIZED VIEW IF NOT EXISTS figure_changes_to_records TO figure_records AS SELECT * FROM figure_changes;

CREATE TABLE IF NOT EXISTS rejection_records (minute DateTime64(6, 'UTC') CODEC(DoubleDelta, ZSTD(1)), `partition` Int64, `offset` Int64, sign Int8, reasons Array(LowCardinality(String)), app_name LowCardinality(Nullable(String)), agent_name LowCardinality(Nullable(String)), agent_version LowCardinality(Nullable(String)), environment LowCardinality(Nullable(String)), model LowCardinality(Nullable(String)))
ENGINE = ReplacingMergeTree PARTITION BY toYYYYMM(minute) ORDER BY (minute, `partition`, `offset`, sign);

CREATE MATERIALIZED VIEW IF NOT EXISTS figure_changes_to_rejections TO rejection_records AS SELECT minute, `partition`, `offset`, sign, reasons, app_name, agent_name, agent_version, environment, model FROM figure_changes WHERE notEmpty(reasons);

CREATE TABLE IF NOT EXISTS figure_minutes (
    hour DateTime64(6, 'UTC') CODEC(DoubleDelta, ZSTD(1)), minute DateTime64(6, 'UTC') CODEC(DoubleDelta, ZSTD(1)), `partition` Int64, metric LowCardinality(String), level LowCardinality(String), config_digest LowCardinality(String), scorer_version LowCardinality(String), app_name LowCardinality(Nullable(String)), agent_name LowCardinality(Nullable(String)), agent_version LowCardinality(Nullable(String)), environment LowCardinality(Nullable(String)), model LowCardinality(Nullable(String)), judge LowCardinality(Nullable(String)),
    n Int64 CODEC(T64, ZSTD(1)), evaluated Int64 CODEC(T64, ZSTD(1)), value_sum Float64 CODEC(ZSTD(1)), value_square_sum Float64 CODEC(ZSTD(1)), passed Int64 CODEC(T64, ZSTD(1)), failed Int64 CODEC(T64, ZSTD(1)), missing_input Int64 CODEC(T64, ZSTD(1)), sampled_out Int64 CODEC(T64, ZSTD(1)), budget Int64 CODEC(T64, ZSTD(1)), timeout Int64 CODEC(T64, ZSTD(1)), error Int64 CODEC(T64, ZSTD(1)), unsupported Int64 CODEC(T64, ZSTD(1)), input_tokens Float64 CODEC(ZSTD(1)), output_tokens Float64 CODEC(ZSTD(1)), usd Float64 CODEC(ZSTD(1)), version UInt64,
    INDEX by_minute minute TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version) PARTITION BY toYYYYMM(minute) ORDER BY (hour, minute, `partition`, metric, level, config_digest, scorer_version, app_name, agent_name, agent_version, environment, model, judge) SETTINGS allow_nullable_key = 1;

CREATE TABLE IF NOT EXISTS figure_hours (
    hour DateTime64(6, 'UTC') CODEC(DoubleDelta, ZSTD(1)), minute DateTime64(6, 'UTC') CODEC(DoubleDelta, ZSTD(1)), `partition` Int64, metric LowCardinality(String), level LowCardinality(String), config_digest LowCardinality(String), scorer_version LowCardinality(String), app_name LowCardinality(Nullable(String)), agent_name LowCardinality(Nullable(String)), agent_version LowCardinality(Nullable(String)), environment LowCardinality(Nullable(String)), model LowCardinality(Nullable(String)), judge LowCardinality(Nullable(String)),
    n Int64 CODEC(T64, ZSTD(1)), evaluated Int64 CODEC(T64, ZSTD(1)), value_sum Float64 CODEC(ZSTD(1)), value_square_sum Float64 CODEC(ZSTD(1)), passed Int64 CODEC(T64, ZSTD(1)), failed Int64 CODEC(T64, ZSTD(1)), missing_input Int64 CODEC(T64, ZSTD(1)), sampled_out Int64 CODEC(T64, ZSTD(1)), budget Int64 CODEC(T64, ZSTD(1)), timeout Int64 CODEC(T64, ZSTD(1)), error Int64 CODEC(T64, ZSTD(1)), unsupported Int64 CODEC(T64, ZSTD(1)), input_tokens Float64 CODEC(ZSTD(1)), output_tokens Float64 CODEC(ZSTD(1)), usd Float64 CODEC(ZSTD(1)), version UInt64,
    INDEX by_minute minute TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version) PARTITION BY toYYYYMM(hour) ORDER BY (hour, `partition`, metric, level, config_digest, scorer_version, app_name, agent_name, agent_version, environment, model, judge) SETTINGS allow_nullable_key = 1;

CREATE TABLE IF NOT EXISTS minute_changes AS figure_minutes ENGINE = Null;

CREATE MATERIALIZED VIEW IF NOT EXISTS minute_changes_to_minutes TO figure_minutes AS SELECT * FROM minute_changes;

CREATE MATERIALIZED VIEW IF NOT EXISTS minute_changes_to_hours TO figure_hours AS
SELECT hour, coalesce(min(counted), min(first)) AS minute, `partition`, metric, level, config_digest, scorer_version, app_name, agent_name, agent_version, environment, model, judge, sum(n) AS n, sum(evaluated) AS evaluated, sum(value_sum) AS value_sum, sum(value_square_sum) AS value_square_sum, sum(passed) AS passed, sum(failed) AS failed, sum(missing_input) AS missing_input, sum(sampled_out) AS sampled_out, sum(budget) AS budget, sum(timeout) AS timeout, sum(error) AS error, sum(unsupported) AS unsupported, sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens, sum(usd) AS usd, max(last) AS version FROM (
    SELECT * EXCEPT (version, minute), version AS last, minute AS first, if(n > 0, minute, NULL) AS counted
    FROM (SELECT * FROM minute_changes UNION ALL SELECT * FROM figure_minutes WHERE (hour, `partition`) IN (SELECT hour, `partition` FROM minute_changes))
    ORDER BY last DESC LIMIT 1 BY first, `partition`, metric, level, config_digest, scorer_version, app_name, agent_name, agent_version, environment, model, judge
) GROUP BY hour, `partition`, metric, level, config_digest, scorer_version, app_name, agent_name, agent_version, environment, model, judge;

CREATE MATERIALIZED VIEW IF NOT EXISTS figure_changes_to_minutes TO minute_changes AS SELECT
    fromUnixTimestamp64Micro(toUnixTimestamp64Micro(minute) - positiveModulo(toUnixTimestamp64Micro(minute), 3600000000), 'UTC') AS hour, minute, `partition`, metric, level, config_digest, scorer_version, app_name, agent_name, agent_version, environment, model, judge,
    sum(toInt64(sign)) AS n,
    sum(toInt64(sign * isNotNull(value))) AS evaluated,
    sum(sign * coalesce(value, 0.)) AS value_sum,
    sum(sign * coalesce(value * value, 0.)) AS value_square_sum,
    sum(toInt64(sign * (status = 'PASSED'))) AS passed,
    sum(toInt64(sign * (status = 'FAILED'))) AS failed,
    sum(toInt64(sign * coalesce(not_evaluated_because = 'missing_input', false))) AS missing_input,
    sum(toInt64(sign * coalesce(not_evaluated_because = 'sampled_out', false))) AS sampled_out,
    sum(toInt64(sign * coalesce(not_evaluated_because = 'budget', false))) AS budget,
    sum(toInt64(sign * coalesce(not_evaluated_because = 'timeout', false))) AS timeout,
    sum(toInt64(sign * coalesce(not_evaluated_because = 'error', false))) AS error,
    sum(toInt64(sign * coalesce(not_evaluated_because = 'unsupported', false))) AS unsupported,
    sum((sign > 0) * toFloat64(cost_input_tokens)) AS input_tokens,
    sum((sign > 0) * toFloat64(cost_output_tokens)) AS output_tokens,
    sum((sign > 0) * cost_usd) AS usd,
    toUInt64(toUnixTimestamp64Nano(now64(9))) AS version
FROM (SELECT * FROM (SELECT * FROM figure_changes UNION ALL SELECT * FROM figure_records WHERE (minute, `partition`) IN (SELECT minute, `partition` FROM figure_changes)) LIMIT 1 BY minute, `partition`, `offset`, sign)
GROUP BY minute, `partition`, metric, level, config_digest, scorer_version, app_name, agent_name, agent_version, environment, model, judge;

CREATE MATERIALIZED VIEW IF NOT EXISTS new_results_to_figures TO figure_changes AS SELECT * FROM (
    SELECT fromUnixTimestamp64Micro(toUnixTimestamp64Micro(occurred_at) - positiveModulo(toUnixTimestamp64Micro(occurred_at), 60000000), 'UTC') AS minute, `partition`, `offset`, toInt8(1) AS sign, if(metric = 'gate' AND status = 'FAILED', arrayFilter(reason -> reason != '', JSONExtract(details, 'reasons', 'Array(String)')), []) AS reasons,
        metric, level, config_digest, scorer_version, app_name, agent_name, agent_version, environment, model, judge, value, status, not_evaluated_because, cost_input_tokens, cost_output_tokens, cost_usd FROM new_results
    UNION ALL SELECT * REPLACE (toInt8(-1) AS sign) FROM (
    SELECT fromUnixTimestamp64Micro(toUnixTimestamp64Micro(occurred_at) - positiveModulo(toUnixTimestamp64Micro(occurred_at), 60000000), 'UTC') AS minute, `partition`, `offset`, toInt8(1) AS sign, if(metric = 'gate' AND status = 'FAILED', arrayFilter(reason -> reason != '', JSONExtract(details, 'reasons', 'Array(String)')), []) AS reasons,
        metric, level, config_digest, scorer_version, app_name, agent_name, agent_version, environment, model, judge, value, status, not_evaluated_because, cost_input_tokens, cost_output_tokens, cost_usd FROM new_results
    UNION ALL SELECT * FROM figure_records WHERE sign = 1 AND (minute, `partition`, `offset`) IN (
    SELECT minute, `partition`, `offset` FROM (
        SELECT *, max(version) OVER (PARTITION BY opened, key, result_id) AS newest FROM (
            SELECT opened, key, result_id, version, fromUnixTimestamp64Micro(toUnixTimestamp64Micro(occurred_at) - positiveModulo(toUnixTimestamp64Micro(occurred_at), 60000000), 'UTC') AS minute, `partition`, `offset` FROM new_results
            UNION ALL SELECT opened, key, result_id, version, minute, `partition`, `offset` FROM result_records WHERE (opened, key) IN (SELECT opened, key FROM new_results)
        )
    ) WHERE version < newest)
    ) WHERE (minute, `partition`, `offset`) IN (
    SELECT minute, `partition`, `offset` FROM (
        SELECT *, max(version) OVER (PARTITION BY opened, key, result_id) AS newest FROM (
            SELECT opened, key, result_id, version, fromUnixTimestamp64Micro(toUnixTimestamp64Micro(occurred_at) - positiveModulo(toUnixTimestamp64Micro(occurred_at), 60000000), 'UTC') AS minute, `partition`, `offset` FROM new_results
            UNION ALL SELECT opened, key, result_id, version, minute, `partition`, `offset` FROM result_records WHERE (opened, key) IN (SELECT opened, key FROM new_results)
        )
    ) WHERE version < newest)
);

CREATE TABLE IF NOT EXISTS judge_costs (evaluated_at DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)), `partition` Int64, `offset` Int64, tokens Int64 CODEC(T64, ZSTD(1)), usd Float64)
ENGINE = ReplacingMergeTree PARTITION BY toYYYYMM(evaluated_at) ORDER BY (evaluated_at, `partition`, `offset`);

CREATE MATERIALIZED VIEW IF NOT EXISTS new_results_to_costs TO judge_costs AS SELECT evaluated_at, `partition`, `offset`, cost_input_tokens + cost_output_tokens AS tokens, cost_usd AS usd FROM new_results WHERE NOT cost_cached AND (cost_input_tokens + cost_output_tokens > 0 OR cost_usd > 0);

CREATE TABLE IF NOT EXISTS first_results (kind String, value String, agent_name Nullable(String), minute SimpleAggregateFunction(min, DateTime64(6, 'UTC')))
ENGINE = AggregatingMergeTree ORDER BY (kind, value, agent_name) SETTINGS allow_nullable_key = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS new_results_to_first_agent_versions TO first_results AS SELECT 'agent_version' AS kind, assumeNotNull(agent_version) AS value, agent_name AS agent_name, min(fromUnixTimestamp64Micro(toUnixTimestamp64Micro(occurred_at) - positiveModulo(toUnixTimestamp64Micro(occurred_at), 60000000), 'UTC')) AS minute FROM new_results WHERE isNotNull(agent_version) GROUP BY value, agent_name;

CREATE MATERIALIZED VIEW IF NOT EXISTS new_results_to_first_config_digests TO first_results AS SELECT 'config_digest' AS kind, assumeNotNull(config_digest) AS value, CAST(NULL, 'Nullable(String)') AS agent_name, min(fromUnixTimestamp64Micro(toUnixTimestamp64Micro(occurred_at) - positiveModulo(toUnixTimestamp64Micro(occurred_at), 60000000), 'UTC')) AS minute FROM new_results WHERE isNotNull(config_digest) GROUP BY value, agent_name;

CREATE MATERIALIZED VIEW IF NOT EXISTS new_results_to_first_models TO first_results AS SELECT 'model' AS kind, assumeNotNull(model) AS value, CAST(NULL, 'Nullable(String)') AS agent_name, min(fromUnixTimestamp64Micro(toUnixTimestamp64Micro(occurred_at) - positiveModulo(toUnixTimestamp64Micro(occurred_at), 60000000), 'UTC')) AS minute FROM new_results WHERE isNotNull(model) GROUP BY value, agent_name;

CREATE MATERIALIZED VIEW IF NOT EXISTS new_results_to_first_judges TO first_results AS SELECT 'judge' AS kind, assumeNotNull(judge) AS value, CAST(NULL, 'Nullable(String)') AS agent_name, min(fromUnixTimestamp64Micro(toUnixTimestamp64Micro(occurred_at) - positiveModulo(toUnixTimestamp64Micro(occurred_at), 60000000), 'UTC')) AS minute FROM new_results WHERE isNotNull(judge) GROUP BY value, agent_name;

CREATE VIEW IF NOT EXISTS rollups AS SELECT minute AS minute, metric AS metric, level AS level, config_digest AS config_digest, scorer_version AS scorer_version, app_name AS app_name, agent_name AS agent_name, agent_version AS agent_version, environment AS environment, model AS model, judge AS judge, n AS n, evaluated AS evaluated, value_sum AS value_sum, value_square_sum AS value_square_sum, passed AS passed, failed AS failed, missing_input AS missing_input, sampled_out AS sampled_out, budget AS budget, timeout AS timeout, error AS error, unsupported AS unsupported, input_tokens AS input_tokens, output_tokens AS output_tokens, usd AS usd FROM figure_minutes FINAL;

CREATE VIEW IF NOT EXISTS rollup_hours AS SELECT hour AS hour, minute AS minute, metric AS metric, level AS level, config_digest AS config_digest, scorer_version AS scorer_version, app_name AS app_name, agent_name AS agent_name, agent_version AS agent_version, environment AS environment, model AS model, judge AS judge, n AS n, evaluated AS evaluated, value_sum AS value_sum, value_square_sum AS value_square_sum, passed AS passed, failed AS failed, missing_input AS missing_input, sampled_out AS sampled_out, budget AS budget, timeout AS timeout, error AS error, unsupported AS unsupported, input_tokens AS input_tokens, output_tokens AS output_tokens, usd AS usd FROM figure_hours FINAL;

CREATE VIEW IF NOT EXISTS rejections AS SELECT minute AS minute, app_name AS app_name, agent_name AS agent_name, agent_version AS agent_version, environment AS environment, model AS model, arrayJoin(reasons) AS reason, toInt64(sign) AS n FROM rejection_records FINAL;

CREATE VIEW IF NOT EXISTS rollup_changes AS SELECT * FROM rollups WHERE false;

CREATE VIEW IF NOT EXISTS rejection_changes AS SELECT * FROM rejections WHERE false;

INSERT INTO store_version VALUES (12);
