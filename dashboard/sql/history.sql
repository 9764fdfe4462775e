-- What happened to one slot, in the order in which it took effect, also as a source that was read.
SELECT op, kind, role, outcome, slot, generation, request_id, forward, depth_before, depth, label,
       grid, step, accept_len, src_slot, node, position, x,
       format('{}.{}', writer, seq) AS event
FROM acts
WHERE pool = $pool
  AND (slot = $slot OR src_slot = $slot)
  AND x BETWEEN $low AND $high
  AND (len($ops) = 0 OR list_contains($ops, op))
  AND ($role IS NULL OR role = $role)
ORDER BY position, "order", seq
LIMIT $limit
