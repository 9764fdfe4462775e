-- One span per event, that is per (slot, act). Requests and forwards have spans of their own, made
-- from both their ends; an amend is no act, it completes one.
-- An act on the device begins when its forward was launched and ends when the host had its result;
-- an act of the host takes no time. The parent is the request, else the forward; where there are
-- both, the forward is a link.
CREATE OR REPLACE VIEW spans_of_events AS
WITH timed AS (
    SELECT e.*, remote_trace_id, origin_trace_id, origin_span_id, reason,
           launch IS NOT NULL AND done_ns IS NULL AS open,
           if(launch IS NULL, time_ns, coalesce(launch_ns, time_ns)) AS start_ns,
           if(launch IS NULL, time_ns, coalesce(done_ns, last_ns)) AS end_ns
    FROM events AS e
    LEFT JOIN (SELECT process, forward, launch_ns, done_ns FROM span_forwards)
        USING (process, forward)
    LEFT JOIN span_ends USING (process)
    LEFT JOIN span_remotes USING (process, request)
    LEFT JOIN span_origins USING (writer, seq)
    WHERE op NOT IN ('request.begin', 'request.end', 'forward.launch', 'forward.done', 'amend')
)
SELECT span_trace_id(process, request, forward, remote_trace_id) AS trace_id,
       event_span_id(writer, seq) AS span_id,
       CASE WHEN request IS NOT NULL THEN request_span_id(process, request)
            WHEN forward IS NOT NULL THEN forward_span_id(process, forward) END AS parent_span_id,
       256::UINTEGER AS flags,
       if(op LIKE 'verify.%' OR op LIKE 'relay.%', op, 'slot.' || op) AS name,
       'internal' AS kind,
       start_ns,
       greatest(start_ns, end_ns) AS end_ns,
       ('{' || concat_ws(',',
           span_number('slotscope.process', e.process),
           span_number('slotscope.writer', e.writer),
           span_number('slotscope.seq', e.seq),
           span_number('slotscope.order', e."order"),
           span_number('slotscope.position', e.position),
           span_number('slotscope.time_ns', e.time_ns),
           span_word('slotscope.op', e.op),
           span_word('slotscope.source', e.source),
           span_word('slotscope.kind', e.kind),
           span_word('slotscope.role', e.role),
           span_word('slotscope.component', e.component),
           span_word('slotscope.unit', e.unit),
           span_word('slotscope.outcome', e.outcome),
           span_number('slotscope.forward', e.forward),
           span_number('slotscope.micro_batch', e.micro_batch),
           span_number('slotscope.stream', e.stream),
           span_number('slotscope.launch', e.launch),
           span_number('slotscope.pool', e.pool),
           span_number('slotscope.slot', e.slot),
           span_number('slotscope.generation', e.generation),
           span_number('slotscope.request', e.request),
           span_number('slotscope.row', e.row),
           span_number('slotscope.depth_before', e.depth_before),
           span_number('slotscope.depth', e.depth),
           span_number('slotscope.label', e.label),
           span_number('slotscope.grid', e.grid),
           span_number('slotscope.ring', e.ring),
           span_number('slotscope.step', e.step),
           span_number('slotscope.accept_len', e.accept_len),
           span_number('slotscope.src_slot', e.src_slot),
           span_number('slotscope.src_generation', e.src_generation),
           span_number('slotscope.src_row', e.src_row),
           span_number('slotscope.node', e.node),
           span_number('slotscope.token_hash', e.token_hash),
           span_number('slotscope.digest', e.digest),
           span_number('slotscope.amends', e.amends),
           if(open, '"slotscope.open":true', NULL)) || '}')::JSON AS attributes,
       list_filter([
           if(request IS NOT NULL AND forward IS NOT NULL,
              span_link(forward_trace_id(process, forward),
                        forward_span_id(process, forward), 'forward'), NULL),
           span_link(origin_trace_id, origin_span_id, reason)
       ], lambda link: link IS NOT NULL) AS links,
       if(outcome = 'failed', 'error', 'unset') AS status_code,
       if(outcome = 'failed', op || ' failed', '') AS status_message,
       process, pool, slot, generation, request, forward,
       writer::BIGINT << 40 | seq AS event, open
FROM timed AS e;
