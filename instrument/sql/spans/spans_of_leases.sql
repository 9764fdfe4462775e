-- One span per lease, from the allocation of its slot until the slot is freed, donated or not.
CREATE OR REPLACE VIEW spans_of_leases AS
SELECT span_trace_id(process, request, forward, remote_trace_id) AS trace_id,
       lease_span_id(process, pool, slot, generation) AS span_id,
       CASE WHEN request IS NOT NULL THEN request_span_id(process, request)
            WHEN forward IS NOT NULL THEN forward_span_id(process, forward) END AS parent_span_id,
       256::UINTEGER AS flags,
       'slot.lease' AS name,
       'internal' AS kind,
       coalesce(allocate_ns, free_ns) AS start_ns,
       greatest(coalesce(allocate_ns, free_ns), coalesce(free_ns, last_ns)) AS end_ns,
       ('{' || concat_ws(',',
           span_number('slotscope.process', process),
           span_number('slotscope.pool', pool),
           span_number('slotscope.slot', slot),
           span_number('slotscope.generation', generation),
           span_word('slotscope.role', role),
           span_number('slotscope.request', request),
           span_number('slotscope.forward', forward),
           span_number('slotscope.node', node),
           span_number('slotscope.label', label),
           if(free_ns IS NULL, '"slotscope.open":true', NULL)) || '}')::JSON
           AS attributes,
       list_filter([
           if(request IS NOT NULL AND forward IS NOT NULL,
              span_link(forward_trace_id(process, forward),
                        forward_span_id(process, forward), 'forward'), NULL)
       ], lambda link: link IS NOT NULL) AS links,
       'unset' AS status_code,
       '' AS status_message,
       process, pool, slot, generation, request, forward, NULL::BIGINT AS event,
       free_ns IS NULL AS open
FROM span_leases
LEFT JOIN span_ends USING (process)
LEFT JOIN span_remotes USING (process, request);
