-- One row per lease: a life of a slot, from allocate to free, unchanged by a donate.
--
-- Odd generations are lives. `freed_order` is null while the lease goes on. `depth` and `label` are
-- the latest that were said of it, in the order of docs/events.md.
CREATE VIEW leases AS
SELECT process, pool, slot, generation,
       list(DISTINCT request) FILTER (request IS NOT NULL) AS requests,
       any_value(request) FILTER (op = 'allocate') AS request,
       list(role ORDER BY position, "order", seq)
           FILTER (role IS NOT NULL AND op IN ('allocate', 'swap', 'donate', 'insert')) AS roles,
       min("order") FILTER (op = 'allocate') AS allocated_order,
       min(time_ns) FILTER (op = 'allocate') AS allocated_ns,
       bool_or(donated) AS donated,
       min("order") FILTER (donated) AS donated_order,
       min(time_ns) FILTER (donated) AS donated_ns,
       arg_max(node, "order") FILTER (node IS NOT NULL AND op IN ('donate', 'insert')) AS node,
       arg_max(label, "order") FILTER (label IS NOT NULL AND op IN ('donate', 'insert')) AS label,
       arg_max(depth, (position, "order", seq)) FILTER (depth IS NOT NULL) AS depth,
       max(ended_order) AS freed_order,
       max(ended_ns) AS freed_ns,
       count(*) AS events,
       max(time_ns) AS last_ns
FROM (
    SELECT *,
           op IN ('donate', 'insert') AND coalesce(outcome, 'ok') NOT IN ('suppressed', 'exists')
               AS donated,
           NULL::BIGINT AS ended_order,
           NULL::BIGINT AS ended_ns
    FROM events
    WHERE slot IS NOT NULL AND generation % 2 = 1
    UNION ALL BY NAME
    -- A free carries the even generation that it begins.
    SELECT * REPLACE (generation - 1 AS generation), FALSE AS donated,
           "order" AS ended_order, time_ns AS ended_ns
    FROM events
    WHERE op = 'free' AND generation % 2 = 0 AND generation > 0
)
GROUP BY process, pool, slot, generation;
