-- Spans that others sent (OTLP in), one column per field of OTLP's Span and of what wraps it. Ids are
-- hexadecimal, attributes are one JSON object. The columns of `spans_computed`, in its order.
CREATE TABLE IF NOT EXISTS otlp_spans (
    trace_id VARCHAR, span_id VARCHAR, trace_state VARCHAR, parent_span_id VARCHAR,
    flags UINTEGER, name VARCHAR, kind VARCHAR,
    start_time_unix_nano BIGINT, end_time_unix_nano BIGINT,
    attributes JSON, dropped_attributes_count UINTEGER,
    events STRUCT(time_unix_nano BIGINT, name VARCHAR, attributes JSON,
                  dropped_attributes_count UINTEGER)[],
    dropped_events_count UINTEGER,
    links STRUCT(trace_id VARCHAR, span_id VARCHAR, trace_state VARCHAR, attributes JSON,
                 dropped_attributes_count UINTEGER, flags UINTEGER)[],
    dropped_links_count UINTEGER,
    status_code VARCHAR, status_message VARCHAR,
    scope_name VARCHAR, scope_version VARCHAR, scope_attributes JSON,
    scope_dropped_attributes_count UINTEGER, scope_schema_url VARCHAR,
    resource_attributes JSON, resource_dropped_attributes_count UINTEGER,
    resource_schema_url VARCHAR,
    process INTEGER, pool INTEGER, slot INTEGER, generation INTEGER, request INTEGER,
    forward INTEGER, event BIGINT, open BOOLEAN
);
