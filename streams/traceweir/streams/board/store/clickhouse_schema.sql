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
    `written_at` DateTime64(6, 'UTC'),
    `session_id` String,
    `segment` Int64,
    `revision` Int64,
    `attempt` Int64,
    `level` LowCardinality(String),
    `invocation_id` Nullable(String),
    `trace_id` Nullable(String),
    `metric` LowCardinality(String),
    `value` Nullable(Float64),
    `threshold` Nullable(Float64),
    `status` LowCardinality(String),
    `not_evaluated_because` LowCardinality(Nullable(String)),
    `rationale` String,
    `details` String,
    `cost_input_tokens` Int64,
    `cost_output_tokens` Int64,
    `cost_usd` Float64,
    `cost_cached` Bool,
    `started_at` Nullable(DateTime64(6, 'UTC')),
    `occurred_at` DateTime64(6, 'UTC'),
    `evaluated_at` DateTime64(6, 'UTC'),
    `result_id` String,
    `scorer_version` LowCardinality(String),
    `config_digest` LowCardinality(String),
    `partition` Int64,
    `offset` Int64,
    `app_name` LowCardinality(Nullable(String)),
    `agent_name` LowCardinality(Nullable(String)),
    `agent_version` LowCardinality(Nullable(String)),
    `environment` LowCardinality(Nullable(String)),
    `model` LowCardinality(Nullable(String)),
    `user_id` Nullable(String),
    `labels` Nullable(String),
    `trace_context_trace_id` Nullable(String),
    `trace_context_span_id` Nullable(String),
    `sampling_probability` Nullable(Float64),
    `source` Nullable(String),
    `cause` LowCardinality(Nullable(String)),
    `judge` LowCardinality(Nullable(String)),
    `category` LowCardinality(Nullable(String)),
    `inclusion_probability` Nullable(Float64),
    INDEX by_time occurred_at TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version) ORDER BY (key, session_id, result_id);

CREATE TABLE IF NOT EXISTS results_versions AS results ENGINE = ReplacingMergeTree ORDER BY (key, session_id, result_id, version);

CREATE MATERIALIZED VIEW IF NOT EXISTS results_to_versions TO results_versions AS SELECT key, version, `written_at`, `session_id`, `segment`, `revision`, `attempt`, `level`, `invocation_id`, `trace_id`, `metric`, `value`, `threshold`, `status`, `not_evaluated_because`, `rationale`, `details`, `cost_input_tokens`, `cost_output_tokens`, `cost_usd`, `cost_cached`, `started_at`, `occurred_at`, `evaluated_at`, `result_id`, `scorer_version`, `config_digest`, `partition`, `offset`, `app_name`, `agent_name`, `agent_version`, `environment`, `model`, `user_id`, `labels`, `trace_context_trace_id`, `trace_context_span_id`, `sampling_probability`, `source`, `cause`, `judge`, `category`, `inclusion_probability` FROM results;

CREATE VIEW IF NOT EXISTS replaced_results AS SELECT key, `written_at`, `session_id`, `segment`, `revision`, `attempt`, `level`, `invocation_id`, `trace_id`, `metric`, `value`, `threshold`, `status`, `not_evaluated_because`, `rationale`, `details`, `cost_input_tokens`, `cost_output_tokens`, `cost_usd`, `cost_cached`, `started_at`, `occurred_at`, `evaluated_at`, `result_id`, `scorer_version`, `config_digest`, `partition`, `offset`, `app_name`, `agent_name`, `agent_version`, `environment`, `model`, `user_id`, `labels`, `trace_context_trace_id`, `trace_context_span_id`, `sampling_probability`, `source`, `cause`, `judge`, `category`, `inclusion_probability` FROM (
    SELECT *, max(version) OVER (PARTITION BY key, session_id, result_id) AS newest FROM results_versions FINAL
) WHERE version < newest;

CREATE TABLE IF NOT EXISTS sessions (
    key UInt64 DEFAULT reinterpretAsUInt64(substring(MD5(session_id), 9, 8)),
    version UInt128 DEFAULT toUInt128(revision),
    `written_at` DateTime64(6, 'UTC'),
    `session_id` String,
    `segment` Int64,
    `revision` Int64,
    `closed_because` String,
    `first_record_at` DateTime64(6, 'UTC'),
    `last_record_at` DateTime64(6, 'UTC'),
    `events` Int64,
    `traces` Int64,
    `app_name` LowCardinality(Nullable(String)),
    `agent_name` LowCardinality(Nullable(String)),
    `agent_version` LowCardinality(Nullable(String)),
    `environment` LowCardinality(Nullable(String)),
    `model` LowCardinality(Nullable(String)),
    `document` Nullable(String),
    `partition` Int64,
    `offset` Int64,
    INDEX by_time last_record_at TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version) ORDER BY (key, session_id, segment);

CREATE TABLE IF NOT EXISTS network (
    key UInt64 DEFAULT reinterpretAsUInt64(substring(MD5(trace_id), 9, 8)),
    version UInt128 DEFAULT toUInt128(`offset`),
    `written_at` DateTime64(6, 'UTC'),
    `trace_id` String,
    `accepted` Bool,
    `document` Nullable(String),
    `partition` Int64,
    `offset` Int64,
    INDEX by_time written_at TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version) ORDER BY (key, trace_id);

CREATE TABLE IF NOT EXISTS dead_letters (
    key UInt64 DEFAULT reinterpretAsUInt64(substring(MD5(letter_id), 9, 8)),
    version UInt128 DEFAULT toUInt128(`offset`),
    `written_at` DateTime64(6, 'UTC'),
    `letter_id` String,
    `reason` LowCardinality(String),
    `stage` String,
    `detail` String,
    `source_topic` String,
    `source_partition` Int64,
    `source_offset` Int64,
    `record_key` Nullable(String),
    `record_value` Nullable(String),
    `record_bytes` Int64,
    `partition` Int64,
    `offset` Int64,
    INDEX by_time written_at TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version) ORDER BY (key, letter_id);

CREATE TABLE IF NOT EXISTS replays (
    key UInt64 DEFAULT reinterpretAsUInt64(substring(MD5(letter_id), 9, 8)),
    version UInt128 DEFAULT toUInt128(`offset`),
    `written_at` DateTime64(6, 'UTC'),
    `letter_id` String,
    `partition` Int64,
    `offset` Int64,
    INDEX by_time written_at TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version) ORDER BY (key, letter_id);

CREATE TABLE IF NOT EXISTS figure_records (
    minute DateTime64(6, 'UTC'),
    `partition` Int64,
    `offset` Int64,
    sign Int8,
    bucket Int64,
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
ENGINE = ReplacingMergeTree ORDER BY (minute, `partition`, `offset`, sign);

CREATE MATERIALIZED VIEW IF NOT EXISTS results_to_figures TO figure_records AS SELECT
    fromUnixTimestamp64Micro(toUnixTimestamp64Micro(occurred_at) - positiveModulo(toUnixTimestamp64Micro(occurred_at), 60000000), 'UTC') AS minute,
    `partition`, `offset`, toInt8(1) AS sign,
    toInt64(ceil(log(greatest((toUnixTimestamp64Micro(evaluated_at) - toUnixTimestamp64Micro(occurred_at)) / 1000, 1.)) / log(1.1))) AS bucket,
    if(metric = 'gate' AND status = 'FAILED', arrayFilter(reason -> reason != '', JSONExtract(details, 'reasons', 'Array(String)')), []) AS reasons,
    metric, level, config_digest, scorer_version, app_name, agent_name, agent_version, environment, model, judge, value, status, not_evaluated_because, cost_input_tokens, cost_output_tokens, cost_usd
FROM results;

CREATE TABLE IF NOT EXISTS removed_results (key UInt64, result_id String, version UInt128, minute DateTime64(6, 'UTC'), `partition` Int64, `offset` Int64) ENGINE = ReplacingMergeTree ORDER BY (key, result_id, version);

CREATE TABLE IF NOT EXISTS judge_costs (evaluated_at DateTime64(6, 'UTC'), `partition` Int64, `offset` Int64, tokens Int64, usd Float64)
ENGINE = ReplacingMergeTree ORDER BY (evaluated_at, `partition`, `offset`);

CREATE MATERIALIZED VIEW IF NOT EXISTS results_to_costs TO judge_costs AS SELECT evaluated_at, `partition`, `offset`, cost_input_tokens + cost_output_tokens AS tokens, cost_usd AS usd FROM results WHERE NOT cost_cached AND (cost_input_tokens + cost_output_tokens > 0 OR cost_usd > 0);

CREATE TABLE IF NOT EXISTS first_results (kind String, value String, agent_name Nullable(String), minute SimpleAggregateFunction(min, DateTime64(6, 'UTC')))
ENGINE = AggregatingMergeTree ORDER BY (kind, value, agent_name) SETTINGS allow_nullable_key = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS results_to_first_agent_versions TO first_results AS SELECT 'agent_version' AS kind, assumeNotNull(agent_version) AS value, agent_name AS agent_name, min(fromUnixTimestamp64Micro(toUnixTimestamp64Micro(occurred_at) - positiveModulo(toUnixTimestamp64Micro(occurred_at), 60000000), 'UTC')) AS minute FROM results WHERE isNotNull(agent_version) GROUP BY value, agent_name;

CREATE MATERIALIZED VIEW IF NOT EXISTS results_to_first_config_digests TO first_results AS SELECT 'config_digest' AS kind, assumeNotNull(config_digest) AS value, CAST(NULL, 'Nullable(String)') AS agent_name, min(fromUnixTimestamp64Micro(toUnixTimestamp64Micro(occurred_at) - positiveModulo(toUnixTimestamp64Micro(occurred_at), 60000000), 'UTC')) AS minute FROM results WHERE isNotNull(config_digest) GROUP BY value, agent_name;

CREATE MATERIALIZED VIEW IF NOT EXISTS results_to_first_models TO first_results AS SELECT 'model' AS kind, assumeNotNull(model) AS value, CAST(NULL, 'Nullable(String)') AS agent_name, min(fromUnixTimestamp64Micro(toUnixTimestamp64Micro(occurred_at) - positiveModulo(toUnixTimestamp64Micro(occurred_at), 60000000), 'UTC')) AS minute FROM results WHERE isNotNull(model) GROUP BY value, agent_name;

CREATE MATERIALIZED VIEW IF NOT EXISTS results_to_first_judges TO first_results AS SELECT 'judge' AS kind, assumeNotNull(judge) AS value, CAST(NULL, 'Nullable(String)') AS agent_name, min(fromUnixTimestamp64Micro(toUnixTimestamp64Micro(occurred_at) - positiveModulo(toUnixTimestamp64Micro(occurred_at), 60000000), 'UTC')) AS minute FROM results WHERE isNotNull(judge) GROUP BY value, agent_name;

CREATE VIEW IF NOT EXISTS rollups AS SELECT
    minute AS minute,
    metric AS metric,
    level AS level,
    config_digest AS config_digest,
    scorer_version AS scorer_version,
    app_name AS app_name,
    agent_name AS agent_name,
    agent_version AS agent_version,
    environment AS environment,
    model AS model,
    judge AS judge,
    toInt64(sign) AS n,
    toInt64(sign * isNotNull(value)) AS evaluated,
    sign * coalesce(value, 0.) AS value_sum,
    sign * coalesce(value * value, 0.) AS value_square_sum,
    toInt64(sign * (status = 'PASSED')) AS passed,
    toInt64(sign * (status = 'FAILED')) AS failed,
    toInt64(sign * coalesce(not_evaluated_because = 'missing_input', false)) AS missing_input,
    toInt64(sign * coalesce(not_evaluated_because = 'sampled_out', false)) AS sampled_out,
    toInt64(sign * coalesce(not_evaluated_because = 'budget', false)) AS budget,
    toInt64(sign * coalesce(not_evaluated_because = 'timeout', false)) AS timeout,
    toInt64(sign * coalesce(not_evaluated_because = 'error', false)) AS error,
    toInt64(sign * coalesce(not_evaluated_because = 'unsupported', false)) AS unsupported,
    (sign > 0) * toFloat64(cost_input_tokens) AS input_tokens,
    (sign > 0) * toFloat64(cost_output_tokens) AS output_tokens,
    (sign > 0) * cost_usd AS usd
FROM figure_records FINAL;

CREATE VIEW IF NOT EXISTS rollup_hours AS SELECT
    fromUnixTimestamp64Micro(toUnixTimestamp64Micro(minute) - positiveModulo(toUnixTimestamp64Micro(minute), 3600000000), 'UTC') AS hour,
    minute AS minute,
    metric AS metric,
    level AS level,
    config_digest AS config_digest,
    scorer_version AS scorer_version,
    app_name AS app_name,
    agent_name AS agent_name,
    agent_version AS agent_version,
    environment AS environment,
    model AS model,
    judge AS judge,
    toInt64(sign) AS n,
    toInt64(sign * isNotNull(value)) AS evaluated,
    sign * coalesce(value, 0.) AS value_sum,
    sign * coalesce(value * value, 0.) AS value_square_sum,
    toInt64(sign * (status = 'PASSED')) AS passed,
    toInt64(sign * (status = 'FAILED')) AS failed,
    toInt64(sign * coalesce(not_evaluated_because = 'missing_input', false)) AS missing_input,
    toInt64(sign * coalesce(not_evaluated_because = 'sampled_out', false)) AS sampled_out,
    toInt64(sign * coalesce(not_evaluated_because = 'budget', false)) AS budget,
    toInt64(sign * coalesce(not_evaluated_because = 'timeout', false)) AS timeout,
    toInt64(sign * coalesce(not_evaluated_because = 'error', false)) AS error,
    toInt64(sign * coalesce(not_evaluated_because = 'unsupported', false)) AS unsupported,
    (sign > 0) * toFloat64(cost_input_tokens) AS input_tokens,
    (sign > 0) * toFloat64(cost_output_tokens) AS output_tokens,
    (sign > 0) * cost_usd AS usd
FROM figure_records FINAL;

CREATE VIEW IF NOT EXISTS freshness AS SELECT
    minute AS minute,
    metric AS metric,
    bucket AS bucket,
    toInt64(sign) AS n
FROM figure_records FINAL;

CREATE VIEW IF NOT EXISTS rejections AS SELECT
    minute AS minute,
    app_name AS app_name,
    agent_name AS agent_name,
    agent_version AS agent_version,
    environment AS environment,
    model AS model,
    arrayJoin(reasons) AS reason,
    toInt64(sign) AS n
FROM figure_records FINAL;

CREATE VIEW IF NOT EXISTS rollup_changes AS SELECT * FROM rollups WHERE false;

CREATE VIEW IF NOT EXISTS freshness_changes AS SELECT * FROM freshness WHERE false;

CREATE VIEW IF NOT EXISTS rejection_changes AS SELECT * FROM rejections WHERE false;

INSERT INTO store_version VALUES (9);
