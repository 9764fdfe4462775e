-- id: P1
-- name: evicted-for-spare
-- severity: capacity
-- invariant: a spare, which serves one crossing and is gone, never costs a cached checkpoint: where
--   none is free, the request does without.
-- needs: allocate, free, evict
-- evidence: the allocation that failed, the eviction, and the allocation that it made room for.
-- example: r7+ r7+spare? n2-5 -5 r7+spare5
-- false positives: an engine that does not tell failed allocations is not seen to do it.
-- explains: P1 request
WITH turn AS (
    SELECT process, pool, slot, generation, request, forward, position, "order", time_ns, event, op,
           role, outcome, node,
           -- Everything between two allocations is one stretch.
           count(*) FILTER (op = 'allocate') OVER (
               PARTITION BY process ORDER BY "order", event
               ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS stretch
    FROM seen
    WHERE op IN ('allocate', 'evict')
),
made_room AS (
    SELECT process, stretch, min(event) AS event, count(*) AS evictions,
           arg_min(node, event) AS node
    FROM turn
    WHERE op = 'evict' AND slot > 0
    GROUP BY ALL
),
taken AS (
    SELECT *, lag(event) OVER mine AS failed_event, lag(outcome) OVER mine AS outcome_before,
           lag(role) OVER mine AS role_before, lag(request) OVER mine AS request_before
    FROM turn
    WHERE op = 'allocate'
    WINDOW mine AS (PARTITION BY process ORDER BY "order", event)
)
SELECT t.process, t.pool, t.slot, t.generation, t.request, t.forward, t.position, t.time_ns,
       [t.failed_event, e.event, t.event] AS witness,
       format('Let no slot be free for a spare of {} ({}); then {} lost its checkpoint for it ({}); '
              || 'however, a spare ({}) is given back within a few steps, and the checkpoint would '
              || 'have saved a prefill: it was worth more, a contradiction.',
              request_name(t.process, t.request), event_name(t.failed_event), node_name(e.node),
              event_name(e.event), event_name(t.event)) AS because
FROM taken t
ANTI JOIN doubts d ON d.process = t.process AND d.since <= t.position
JOIN made_room e ON e.process = t.process AND e.stretch = t.stretch
WHERE t.role = 'spare' AND t.slot > 0
  AND t.role_before = 'spare' AND t.outcome_before = 'failed'
  AND t.request_before IS NOT DISTINCT FROM t.request
