-- Each life of a slot: who allocated it and when, under what it was donated, when it was freed.
-- A free may carry the number of the life that it ends or of the pause that follows.
CREATE OR REPLACE VIEW span_leases AS
SELECT process, pool, slot,
       generation - (generation + 1) % 2 AS generation,
       min(time_ns) FILTER (op = 'allocate') AS allocate_ns,
       max(time_ns) FILTER (op = 'free') AS free_ns,
       any_value(request) FILTER (op = 'allocate') AS request,
       any_value(forward) FILTER (op = 'allocate') AS forward,
       any_value(role) FILTER (op = 'allocate') AS role,
       arg_max(node, "order") FILTER (op = 'donate') AS node,
       arg_max(label, "order") FILTER (op = 'donate') AS label
FROM events
WHERE slot IS NOT NULL AND generation IS NOT NULL
  AND (op IN ('allocate', 'free') OR op = 'donate' AND coalesce(outcome, 'ok') NOT IN ('suppressed', 'exists'))
GROUP BY ALL
HAVING count(*) FILTER (op IN ('allocate', 'free')) > 0;
