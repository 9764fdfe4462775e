-- One span per forward, from its launch until the host had its result. Its links are the requests
-- that it computed for.
CREATE OR REPLACE VIEW spans_of_forwards AS
WITH members AS (
    SELECT process, forward,
           list(span_link(request_trace_id(process, request, remote_trace_id),
                          request_span_id(process, request), 'request') ORDER BY request) AS links
    FROM (SELECT DISTINCT process, forward, request FROM events
          WHERE forward IS NOT NULL AND request IS NOT NULL)
    LEFT JOIN span_remotes USING (process, request)
    GROUP BY process, forward
)
SELECT forward_trace_id(process, forward) AS trace_id,
       forward_span_id(process, forward) AS span_id,
       NULL::VARCHAR AS parent_span_id,
       256::UINTEGER AS flags,
       'forward' AS name,
       'internal' AS kind,
       coalesce(launch_ns, done_ns) AS start_ns,
       greatest(coalesce(launch_ns, done_ns), coalesce(done_ns, last_ns)) AS end_ns,
       ('{' || concat_ws(',',
           span_number('slotscope.process', process),
           span_number('slotscope.forward', forward),
           span_word('slotscope.kind', f.kind),
           span_number('slotscope.stream', stream),
           span_number('slotscope.micro_batch', micro_batch),
           span_number('slotscope.launch', launch),
           if(done_ns IS NULL, '"slotscope.open":true', NULL)) || '}')::JSON
           AS attributes,
       coalesce(links, []) AS links,
       'unset' AS status_code,
       '' AS status_message,
       process, NULL::INTEGER AS pool, NULL::INTEGER AS slot, NULL::INTEGER AS generation,
       NULL::INTEGER AS request, forward, NULL::BIGINT AS event, done_ns IS NULL AS open
FROM span_forwards AS f
LEFT JOIN span_ends USING (process)
LEFT JOIN members USING (process, forward);
