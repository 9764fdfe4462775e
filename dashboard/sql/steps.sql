-- What moved a request's live state: one row per chunk, step or commit, placed at its launch, with
-- the result at x2. On stages each moves a part; the parts of the lowest pool stand for all.
-- Those of one kind that begin in one pixel are drawn as one; `folded` counts them.
WITH mine AS (
    SELECT op, kind, pool, slot, forward, micro_batch, depth_before, depth, accept_len, x, done_x,
           position, "order"
    FROM acts
    WHERE request_id = $request
      AND (op IN ('clear', 'restore', 'advance')
           OR (op = 'scatter' AND role = 'live' AND coalesce(outcome, 'ok') <> 'failed'))
)
SELECT op, any_value(kind) AS kind,
       arg_max(slot, position)            AS slot,
       arg_max(forward, position)         AS forward,
       arg_max(micro_batch, position)     AS micro_batch,
       min(coalesce(depth_before, depth)) AS depth_before,
       max(depth)                         AS depth,
       sum(accept_len)::INTEGER           AS accept_len,
       count(*)                           AS folded,
       min(x)                             AS x,
       least(max(coalesce(done_x, $high)), $high) AS x2
FROM mine
WHERE pool = (SELECT min(pool) FROM mine)
  AND x BETWEEN $low AND $high
GROUP BY op, kind, floor((x - $low) / $pixel)
ORDER BY x, min(position), min("order")
LIMIT $limit
