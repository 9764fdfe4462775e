-- One row per slot that was ever named: its lives, its events, and what it is at the end.
CREATE VIEW slots AS
SELECT process, pool, slot,
       (max(generation) + 1) // 2 AS leases,
       count(*) AS events,
       if(max(generation) % 2 = 1, 'live', 'free') AS state,
       if(max(generation) % 2 = 1,
          arg_max(role, (position, "order", seq)) FILTER (role IS NOT NULL), NULL) AS role,
       if(max(generation) % 2 = 1,
          arg_max(request, (position, "order", seq)) FILTER (request IS NOT NULL), NULL) AS request,
       arg_max(depth, (position, "order", seq)) FILTER (depth IS NOT NULL) AS depth,
       arg_max(op, (position, "order", seq)) AS last_op,
       max(time_ns) AS last_ns
FROM events
WHERE slot IS NOT NULL
GROUP BY process, pool, slot;
