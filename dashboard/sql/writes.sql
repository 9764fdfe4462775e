-- Writes in flight: from the launch of a forward to its result, one row per slot and forward.
-- Those that begin in one pixel of a lane are drawn as one from the first launch to the last result;
-- `folded` counts them, and the columns tell of the last.
WITH write AS (
    SELECT pool, slot, forward,
           any_value(kind)                      AS kind,
           any_value(request)                   AS request,
           any_value(request_id)                AS request_id,
           any_value(role)                      AS role,
           string_agg(DISTINCT op, ', ' ORDER BY op) AS ops,
           max(depth)                           AS depth,
           min(x)                               AS x,
           max(done_x)                          AS done_x
    FROM acts
    WHERE op IN ('clear', 'restore', 'advance', 'scatter', 'copy', 'load_back', 'transfer.receive')
      AND forward IS NOT NULL
      AND list_contains($lanes, slot)
      AND (len($ops) = 0 OR list_contains($ops, op))
      AND ($role IS NULL OR role = $role)
    GROUP BY pool, slot, forward
)
SELECT pool, slot,
       arg_max(forward, x)    AS forward,
       arg_max(kind, x)       AS kind,
       arg_max(request, x)    AS request,
       arg_max(request_id, x) AS request_id,
       arg_max(role, x)       AS role,
       arg_max(ops, x)        AS ops,
       arg_max(depth, x)      AS depth,
       greatest(min(x), $low) AS x,
       least(max(coalesce(done_x, $high)), $high) AS x2,
       bool_or(done_x IS NULL) AS open,
       count(*)               AS folded
FROM write
WHERE x <= $high
  AND coalesce(done_x, $high) >= $low
GROUP BY pool, slot, floor((greatest(x, $low) - $low) / $pixel)
ORDER BY pool, slot, x
