-- The events that prove a finding, in the order in which they took effect. events: their ids.
SELECT op, kind, role, outcome, slot, generation, request_id, forward, depth_before, depth, label,
       grid, step, accept_len, src_slot, node, position, x,
       format('{}.{}', writer, seq) AS event
FROM acts
WHERE list_contains($events, acts.event)
ORDER BY position, "order", seq
