-- Checkpoints that nodes lost, and what for: the allocation that had failed before and came to be
-- behind it. `purpose` is null where there is none: keys and values were short, or the cache was
-- flushed. The latest first; `total` and `for_spare` count all in the window.
WITH turn AS (
    SELECT op, node, slot, generation, label, role, outcome, request_id, x, position,
           writer, seq, "order",
           -- Everything between two allocations is one stretch.
           count(*) FILTER (op = 'allocate') OVER (ORDER BY "order", seq) AS stretch
    FROM acts
    WHERE op IN ('allocate', 'evict')
      AND pool = $pool
),
allocation AS (
    SELECT stretch, role, request_id, outcome,
           lead(role)       OVER by_stretch AS next_role,
           lead(request_id) OVER by_stretch AS next_request_id,
           lead(outcome)    OVER by_stretch AS next_outcome
    FROM turn
    WHERE op = 'allocate'
    WINDOW by_stretch AS (ORDER BY stretch)
),
evicted AS (
    SELECT turn.op, node, slot, generation, label, x, position,
           CASE WHEN a.outcome = 'failed' AND a.next_outcome IS DISTINCT FROM 'failed'
                 AND a.role = a.next_role AND a.request_id IS NOT DISTINCT FROM a.next_request_id
                THEN a.role END AS purpose,
           CASE WHEN purpose IS NOT NULL THEN a.request_id END AS for_request,
           format('{}.{}', writer, seq) AS event
    FROM turn
    LEFT JOIN allocation AS a USING (stretch)
    WHERE turn.op = 'evict'
      AND slot IS NOT NULL
      AND x BETWEEN $low AND $high
)
SELECT node, slot, generation, label, purpose, for_request, x, event,
       count(*) OVER () AS total,
       count(*) FILTER (purpose = 'spare') OVER () AS for_spare
FROM evicted
ORDER BY purpose IS NOT DISTINCT FROM 'spare' DESC, position DESC
LIMIT $limit
