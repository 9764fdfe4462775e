-- One span per request, from its begin to its end. Its parent is the caller's span, if the caller
-- sent one: flag 0x200 says that it is remote.
CREATE OR REPLACE VIEW spans_of_requests AS
SELECT request_trace_id(process, request, remote_trace_id) AS trace_id,
       request_span_id(process, request) AS span_id,
       remote_span_id AS parent_span_id,
       if(remote_span_id IS NULL, 256, 768)::UINTEGER AS flags,
       'request' AS name,
       'server' AS kind,
       coalesce(begin_ns, end_ns) AS start_ns,
       greatest(coalesce(begin_ns, end_ns), coalesce(end_ns, last_ns)) AS end_ns,
       ('{' || concat_ws(',',
           span_attribute('gen_ai.request.id', q.request_id),
           span_number('gen_ai.usage.input_tokens', input_tokens),
           span_number('gen_ai.usage.output_tokens', output_tokens),
           span_number('gen_ai.usage.cached_tokens', coalesce(cached_tokens, 0)),
           span_number('slotscope.process', process),
           span_number('slotscope.request', request),
           span_attribute('slotscope.client_id', nullif(q.client_id, '')),
           span_number('slotscope.attempt', q.attempt),
           span_number('slotscope.row', r."row"),
           span_word('slotscope.outcome', outcome),
           if(end_ns IS NULL, '"slotscope.open":true', NULL)) || '}')::JSON
           AS attributes,
       [] AS links,
       'unset' AS status_code,
       '' AS status_message,
       process, NULL::INTEGER AS pool, NULL::INTEGER AS slot, NULL::INTEGER AS generation,
       request, NULL::INTEGER AS forward, NULL::BIGINT AS event, end_ns IS NULL AS open
FROM span_requests AS r
LEFT JOIN span_ends USING (process)
LEFT JOIN requests AS q USING (process, request)
LEFT JOIN span_remotes USING (process, request);
