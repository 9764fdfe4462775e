-- One row per lease: a life of a slot, from allocate to free, unchanged by a donate.
--
-- Odd generations are lives. `freed_order` is null while the lease goes on. `depth` is the latest
-- that was said of it, in the order of docs/events.md; `node` and `label` those under which the tree
-- got it.
CREATE VIEW leases AS
WITH told AS (
    -- One pass over all events, so nothing is sorted here. (position, order) is one number, since
    -- arg_max over a row takes twice the time.
    SELECT process, pool, slot, generation,
           list_sort(list(DISTINCT request) FILTER (request IS NOT NULL)) AS requests,
           any_value(request) FILTER (op = 'allocate') AS request,
           min("order") FILTER (op = 'allocate') AS allocated_order,
           min(time_ns) FILTER (op = 'allocate') AS allocated_ns,
           arg_max(depth, (position::HUGEINT << 64) + "order") FILTER (depth IS NOT NULL) AS depth,
           count(*) AS events,
           max(time_ns) AS last_ns
    FROM events
    WHERE slot IS NOT NULL AND generation % 2 = 1
    GROUP BY process, pool, slot, generation
),
turns AS (
    SELECT process, pool, slot, generation,
           list(role ORDER BY position, "order", seq) AS roles
    FROM events
    WHERE role IS NOT NULL AND slot IS NOT NULL AND generation % 2 = 1
      AND op IN ('allocate', 'swap', 'donate', 'insert')
    GROUP BY process, pool, slot, generation
),
gifts AS (
    SELECT process, pool, slot, generation,
           TRUE AS donated,
           min("order") AS donated_order,
           min(time_ns) AS donated_ns,
           arg_max(node, "order") FILTER (node IS NOT NULL) AS node,
           arg_max(label, "order") FILTER (label IS NOT NULL) AS label
    FROM events
    WHERE op IN ('donate', 'insert') AND slot IS NOT NULL AND generation % 2 = 1
      AND coalesce(outcome, 'ok') NOT IN ('suppressed', 'failed', 'exists')
    GROUP BY process, pool, slot, generation
),
ends AS (
    -- A free carries the even generation that it begins.
    SELECT process, pool, slot, generation - 1 AS generation,
           max("order") AS freed_order, max(time_ns) AS freed_ns
    FROM events
    WHERE op = 'free' AND generation % 2 = 0 AND generation > 0
    GROUP BY process, pool, slot, generation
)
SELECT process, pool, slot, generation, requests, request, roles,
       allocated_order, allocated_ns,
       coalesce(donated, FALSE) AS donated, donated_order, donated_ns, node, label, depth,
       freed_order, freed_ns,
       coalesce(events, 0) + if(freed_order IS NULL, 0, 1) AS events,
       greatest(last_ns, freed_ns) AS last_ns
FROM told
FULL JOIN ends USING (process, pool, slot, generation)
LEFT JOIN turns USING (process, pool, slot, generation)
LEFT JOIN gifts USING (process, pool, slot, generation);
