-- One span per event, that is per (slot, act). Requests and forwards have spans of their own, made
-- from both their ends; an amend is no act, it completes one.
-- An act on the device begins when its forward was launched and ends when the host had its result;
-- an act of the host takes no time. The parent is the request, else the forward; where there are
-- both, the forward is a link.
CREATE OR REPLACE VIEW spans_of_events AS
WITH timed AS (
    SELECT e.*, o.trace_id AS origin_trace_id, o.span_id AS origin_span_id, o.reason,
           launch IS NOT NULL AND done_ns IS NULL AS open,
           if(launch IS NULL, time_ns, coalesce(launch_ns, time_ns)) AS start_ns,
           if(launch IS NULL, time_ns, coalesce(done_ns, last_ns)) AS end_ns
    FROM span_contexts AS e
    LEFT JOIN (SELECT process, forward, launch_ns, done_ns FROM span_forwards)
        USING (process, forward)
    LEFT JOIN span_ends USING (process)
    LEFT JOIN span_origins AS o USING (event)
    WHERE op NOT IN ('request.begin', 'request.end', 'forward.launch', 'forward.done', 'amend')
)
SELECT e.trace_id,
       e.span_id,
       CASE WHEN request IS NOT NULL THEN request_span_id(process, request)
            WHEN forward IS NOT NULL THEN forward_span_id(process, forward) END AS parent_span_id,
       256::UINTEGER AS flags,
       if(op LIKE 'verify.%' OR op LIKE 'relay.%', op, 'slot.' || op) AS name,
       'internal' AS kind,
       start_ns,
       greatest(start_ns, end_ns) AS end_ns,
       ('{' || concat_ws(',',
           span_attribute('slotscope.process', e.process),
           span_attribute('slotscope.writer', e.writer),
           span_attribute('slotscope.seq', e.seq),
           span_attribute('slotscope.order', e."order"),
           span_attribute('slotscope.position', e.position),
           span_attribute('slotscope.time_ns', e.time_ns),
           span_attribute('slotscope.op', e.op),
           span_attribute('slotscope.source', e.source),
           span_attribute('slotscope.kind', e.kind),
           span_attribute('slotscope.role', e.role),
           span_attribute('slotscope.component', e.component),
           span_attribute('slotscope.unit', e.unit),
           span_attribute('slotscope.outcome', e.outcome),
           span_attribute('slotscope.forward', e.forward),
           span_attribute('slotscope.micro_batch', e.micro_batch),
           span_attribute('slotscope.stream', e.stream),
           span_attribute('slotscope.launch', e.launch),
           span_attribute('slotscope.pool', e.pool),
           span_attribute('slotscope.slot', e.slot),
           span_attribute('slotscope.generation', e.generation),
           span_attribute('slotscope.request', e.request),
           span_attribute('slotscope.row', e.row),
           span_attribute('slotscope.depth_before', e.depth_before),
           span_attribute('slotscope.depth', e.depth),
           span_attribute('slotscope.label', e.label),
           span_attribute('slotscope.grid', e.grid),
           span_attribute('slotscope.ring', e.ring),
           span_attribute('slotscope.step', e.step),
           span_attribute('slotscope.accept_len', e.accept_len),
           span_attribute('slotscope.src_slot', e.src_slot),
           span_attribute('slotscope.src_generation', e.src_generation),
           span_attribute('slotscope.src_row', e.src_row),
           span_attribute('slotscope.node', e.node),
           span_attribute('slotscope.token_hash', e.token_hash),
           span_attribute('slotscope.digest', e.digest),
           span_attribute('slotscope.amends', e.amends),
           span_attribute('slotscope.open', if(open, true, NULL))) || '}')::JSON AS attributes,
       list_filter([
           if(request IS NOT NULL AND forward IS NOT NULL,
              span_link(span_trace_id(process, NULL, forward, NULL),
                        forward_span_id(process, forward), 'forward'), NULL),
           span_link(origin_trace_id, origin_span_id, reason)
       ], lambda link: link IS NOT NULL) AS links,
       if(outcome = 'failed', 'error', 'unset') AS status_code,
       if(outcome = 'failed', op || ' failed', '') AS status_message,
       process, pool, slot, generation, request, forward, event, open
FROM timed AS e;
