-- One span per forward, from its launch until the host had its result. Its links are the requests
-- that it computed for.
CREATE OR REPLACE VIEW spans_of_forwards AS
WITH members AS (
    SELECT process, forward,
           list(span_link(span_trace_id(process, request, NULL, remote_trace_id),
                          request_span_id(process, request), 'request') ORDER BY request) AS links
    FROM (SELECT DISTINCT process, forward, request FROM events
          WHERE forward IS NOT NULL AND request IS NOT NULL)
    LEFT JOIN span_remotes USING (process, request)
    GROUP BY process, forward
)
SELECT span_trace_id(process, NULL, forward, NULL) AS trace_id,
       forward_span_id(process, forward) AS span_id,
       NULL::VARCHAR AS parent_span_id,
       256::UINTEGER AS flags,
       'forward' AS name,
       'internal' AS kind,
       coalesce(launch_ns, done_ns) AS start_ns,
       greatest(coalesce(launch_ns, done_ns), coalesce(done_ns, last_ns)) AS end_ns,
       ('{' || concat_ws(',',
           span_attribute('slotscope.process', process),
           span_attribute('slotscope.forward', forward),
           span_attribute('slotscope.kind', f.kind),
           span_attribute('slotscope.stream', stream),
           span_attribute('slotscope.micro_batch', micro_batch),
           span_attribute('slotscope.launch', launch),
           span_attribute('slotscope.open', if(done_ns IS NULL, true, NULL))) || '}')::JSON
           AS attributes,
       coalesce(links, []) AS links,
       'unset' AS status_code,
       '' AS status_message,
       process, NULL::INTEGER AS pool, NULL::INTEGER AS slot, NULL::INTEGER AS generation,
       NULL::INTEGER AS request, forward, NULL::BIGINT AS event, done_ns IS NULL AS open
FROM span_forwards AS f
LEFT JOIN span_ends USING (process)
LEFT JOIN members USING (process, forward);
