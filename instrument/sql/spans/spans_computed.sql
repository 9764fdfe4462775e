-- All spans that are computed from events, in Unix time. The wall clock is read at the start;
-- the end keeps the monotonic distance, so that a clock that was set never turns a span around.
CREATE OR REPLACE VIEW spans_computed AS
WITH spans AS (
    SELECT * FROM spans_of_events
    UNION ALL SELECT * FROM spans_of_leases
    UNION ALL SELECT * FROM spans_of_requests
    UNION ALL SELECT * FROM spans_of_forwards
)
SELECT s.trace_id, s.span_id, '' AS trace_state, coalesce(s.parent_span_id, '') AS parent_span_id,
       s.flags, s.name, s.kind,
       s.start_ns + coalesce(offset_ns, 0) AS start_time_unix_nano,
       s.end_ns + coalesce(offset_ns, 0) AS end_time_unix_nano,
       s.attributes, 0::UINTEGER AS dropped_attributes_count,
       []::STRUCT(time_unix_nano BIGINT, name VARCHAR, attributes JSON,
                  dropped_attributes_count UINTEGER)[] AS events,
       0::UINTEGER AS dropped_events_count,
       s.links, 0::UINTEGER AS dropped_links_count,
       s.status_code, s.status_message,
       'slotscope' AS scope_name, (SELECT version FROM span_trace) AS scope_version,
       '{}'::JSON AS scope_attributes, 0::UINTEGER AS scope_dropped_attributes_count,
       '' AS scope_schema_url,
       coalesce(r.attributes, '{}'::JSON) AS resource_attributes,
       0::UINTEGER AS resource_dropped_attributes_count, '' AS resource_schema_url,
       s.process, s.pool, s.slot, s.generation, s.request, s.forward, s.event, s.open
FROM spans AS s
LEFT JOIN span_resources AS r USING (process)
ASOF LEFT JOIN span_clocks AS c ON s.process = c.process AND s.start_ns >= c.from_ns;
