-- Acts that move a state between owners: the marks on the life lines.
-- One mark per pixel, lane and operation; `folded` counts what it stands for.
SELECT pool, slot, op,
       arg_min(request, "order")    AS request,
       arg_min(request_id, "order") AS request_id,
       arg_min(label, "order")      AS label,
       arg_min(depth, "order")      AS depth,
       arg_min(node, "order")       AS node,
       arg_min(src_slot, "order")   AS src_slot,
       arg_min(outcome, "order")    AS outcome,
       min(x)                       AS x,
       count(*)                     AS folded
FROM acts
WHERE op IN ('donate', 'restore', 'swap', 'match', 'evict')
  AND list_contains($lanes, slot)
  AND x BETWEEN $low AND $high
  AND (len($ops) = 0 OR list_contains($ops, op))
  AND ($role IS NULL OR role = $role)
GROUP BY pool, slot, op, floor((x - $low) / $pixel)
ORDER BY pool, slot, x
