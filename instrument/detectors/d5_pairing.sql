-- id: D5
-- name: pairing
-- severity: corruption
-- invariant: producer and consumer are the same: what a verify wrote is committed and tracked for a
--   request that its plan names, from the scratch row in that plan, within what was accepted, under
--   the micro-batch and the accept length that were relayed; a restore reads what the request's
--   match offered; a prefill's track counts its tokens from the start of the chunk.
-- needs: verify.plan, scatter, advance, match, restore, relay.receive, forward.launch
-- evidence: the producer's event (plan, launch, relay, match, chunk) and the consumer's.
-- example: r7+ r7+live3 P1 1:3@0 1:3@0>64 /1 V2 2:r7?@64 /2 2:r9.3@64+2 V3
-- false positives: none known. Nothing is paired by row alone: both sides must name forward and
--   request, and a column that one side leaves empty is not compared.
-- explains: D5 request, D4 request, D4 lease, D3 lease, D1 lease, D1 request, D2 request, D6 slot
WITH plan AS (
    SELECT process, COALESCE(pool, 0) AS pool, forward, request, COALESCE(src_row, row) AS row,
           micro_batch, event
    FROM seen
    WHERE op = 'verify.plan'
),
launched AS (
    SELECT process, forward, micro_batch, event
    FROM seen
    WHERE op = 'forward.launch' AND kind = 'verify'
),
relayed AS (
    -- Each stage of a process receives it, and all the same.
    SELECT process, forward, request, any_value(accept_len) AS accept_len,
           any_value(micro_batch) AS micro_batch, min(event) AS event
    FROM seen
    WHERE op = 'relay.receive'
    GROUP BY process, forward, request
),
consumed AS (
    SELECT process, pool, slot, generation, request, forward, position, time_ns, event, op, role,
           src_row, accept_len, micro_batch
    FROM seen
    WHERE op = 'scatter' AND kind = 'verify'
),
verified AS (
    SELECT c.*,
           CASE WHEN p.event IS NULL THEN [l.event, c.event]
                WHEN c.src_row <> p.row THEN [p.event, c.event]
                WHEN c.micro_batch <> COALESCE(p.micro_batch, l.micro_batch) THEN [l.event, c.event]
                WHEN c.micro_batch <> r.micro_batch OR c.accept_len <> r.accept_len
                THEN [r.event, c.event] END AS witness,
           CASE WHEN p.event IS NULL
                THEN format('forward {} ({}) verify the requests of its plan; however, {} is for '
                            || '{}, which is not among them: somebody else''s tokens move the state',
                            c.forward, event_name(l.event),
                            act_name(c.op, c.role, c.forward, c.event),
                            request_name(c.process, c.request))
                WHEN c.src_row <> p.row
                THEN format('forward {} verify {} in scratch row {} ({}); however, {} reads row {}: '
                            || 'it takes the state of whoever verified there',
                            c.forward, request_name(c.process, c.request), p.row,
                            event_name(p.event), act_name(c.op, c.role, c.forward, c.event),
                            c.src_row)
                WHEN c.micro_batch <> COALESCE(p.micro_batch, l.micro_batch)
                THEN format('forward {} be one of micro-batch {} ({}); however, on {} {} applies '
                            || 'the result of micro-batch {} to {}: it was accepted for other '
                            || 'requests',
                            c.forward, COALESCE(p.micro_batch, l.micro_batch), event_name(l.event),
                            stage_name(c.process, c.pool),
                            act_name(c.op, c.role, c.forward, c.event), c.micro_batch,
                            request_name(c.process, c.request))
                ELSE format('the result of forward {} for {} be relayed as {} accepted tokens of '
                            || 'micro-batch {} ({}); however, {} applies {} of micro-batch {}',
                            c.forward, request_name(c.process, c.request), r.accept_len,
                            r.micro_batch, event_name(r.event),
                            act_name(c.op, c.role, c.forward, c.event), c.accept_len,
                            c.micro_batch) END AS argument
    FROM consumed c
    -- A forward whose launch is not seen lies where records were lost, and its plan may too.
    JOIN launched l ON l.process = c.process AND l.forward = c.forward
    LEFT JOIN plan p
           ON p.process = c.process AND p.pool = c.pool AND p.forward = c.forward
          AND p.request = c.request
    LEFT JOIN relayed r
           ON r.process = c.process AND r.forward = c.forward AND r.request = c.request
),
hit AS (
    SELECT process, pool, request, node, slot, event, position
    FROM seen
    WHERE op = 'match' AND outcome = 'hit' AND slot > 0
),
restored AS (
    SELECT r.process, r.pool, r.slot, r.generation, r.request, r.forward, r.position, r.time_ns,
           [h.event, r.event] AS witness,
           format('the tree offer {} slot {} of {} ({}); however, {} reads slot {} of {}: the state '
                  || 'of another match',
                  request_name(r.process, r.request), h.slot, node_name(h.node),
                  event_name(h.event), act_name(r.op, r.role, r.forward, r.event), r.src_slot,
                  node_name(r.node)) AS argument
    FROM (FROM seen WHERE op = 'restore') r
    ASOF JOIN hit h
      ON h.process = r.process AND h.request = r.request AND h.pool = r.pool
     AND h.position <= r.position
    WHERE NOT EXISTS (
        FROM hit same
        WHERE same.process = r.process AND same.request = r.request AND same.slot = r.src_slot
          AND same.node IS NOT DISTINCT FROM r.node)
),
chunk AS (
    SELECT process, pool, forward, request, depth_before, event
    FROM seen
    WHERE op = 'advance' AND kind = 'prefill'
),
counted AS (
    SELECT t.process, t.pool, t.slot, t.generation, t.request, t.forward, t.position, t.time_ns,
           [c.event, t.event] AS witness,
           format('forward {} take {} from {} tokens on ({}); however, {} takes the state after {} '
                  || 'of its tokens for that of {}: index and label count from different places',
                  t.forward, request_name(t.process, t.request), c.depth_before,
                  event_name(c.event), act_name(t.op, t.role, t.forward, t.event), t.step,
                  t.depth) AS argument
    FROM (FROM seen WHERE op = 'scatter' AND kind = 'prefill' AND unit = 'token') t
    JOIN chunk c ON c.process = t.process AND c.pool = t.pool AND c.forward = t.forward
                AND c.request = t.request
    WHERE c.depth_before + t.step <> t.depth
),
found AS (
    SELECT process, pool, slot, generation, request, forward, position, time_ns, witness, argument
    FROM verified
    WHERE witness IS NOT NULL
    UNION ALL
    FROM restored
    UNION ALL
    FROM counted
)
SELECT process, pool, slot, generation, request, forward, position, time_ns, witness,
       'Let ' || argument || ', a contradiction.' AS because
FROM found f
ANTI JOIN doubts d ON d.process = f.process AND d.since <= f.position
