-- All that was said of one request, in the order in which it took effect.
SELECT op, kind, role, outcome, slot, generation, pool, forward, micro_batch, depth_before, depth,
       label, grid, step, accept_len, src_slot, node, position, x,
       format('{}.{}', writer, seq) AS event
FROM acts
WHERE request_id = $request
  AND x BETWEEN $low AND $high
ORDER BY position, "order", seq
LIMIT $limit
