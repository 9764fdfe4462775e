-- Nodes of the radix tree that were given a state: what it is filed under, and what it has.
--
-- A node's state is the last that it was given, one part for each pool. `depths` are the depths that
-- its parts have by their last writes; `wrong` counts the parts that differ from the label.
-- `parent` is the deepest node above it that its giver had resumed from, or given, before: a trace
-- tells of no edges. Wrong nodes first, then those that still hold a state, then the latest.
WITH gift AS (
    SELECT node, pool, slot, generation,
           arg_max(label, "order")                                    AS label,
           arg_max(grid, "order") FILTER (grid > 0)                   AS grid,
           arg_min(request, "order") FILTER (request IS NOT NULL)     AS request,
           arg_min(request_id, "order") FILTER (request_id IS NOT NULL) AS request_id,
           min("order") AS first_order,
           min(x)       AS x
    FROM acts
    WHERE op IN ('donate', 'insert')
      AND node IS NOT NULL
      AND slot IS NOT NULL
      AND coalesce(outcome, 'ok') NOT IN ('suppressed', 'failed', 'exists')
    GROUP BY node, pool, slot, generation
),
part AS (
    SELECT gift.*, leases.depth, leases.freed_order
    FROM gift
    LEFT JOIN leases
           ON leases.process = $process AND leases.pool = gift.pool AND leases.slot = gift.slot
          AND leases.generation = gift.generation
    QUALIFY row_number() OVER (PARTITION BY gift.node, gift.pool ORDER BY first_order DESC) = 1
),
filed AS (
    SELECT node,
           any_value(label)            AS label,
           any_value(grid)             AS grid,
           arg_min(request, pool)      AS request,
           arg_min(request_id, pool)   AS request_id,
           arg_min(slot, pool)         AS slot,
           min(pool)                   AS pool,
           arg_min(generation, pool)   AS generation,
           min(first_order)            AS first_order,
           min(x)                      AS x,
           bool_or(freed_order IS NULL) AS held,
           list_sort(list(DISTINCT depth) FILTER (depth IS NOT NULL)) AS depths,
           list(pool ORDER BY pool) FILTER (depth <> label)           AS wrong_pools
    FROM part
    GROUP BY node
),
read AS (
    SELECT node, count(DISTINCT (request, launch)) AS reads
    FROM acts
    WHERE op = 'restore'
      AND node IS NOT NULL
    GROUP BY node
),
-- Where a request had come from, or been, when it gave.
known AS (
    SELECT request, node, label, "order" FROM acts
    WHERE op = 'match' AND outcome = 'hit' AND node IS NOT NULL AND request IS NOT NULL
    UNION
    SELECT request, node, label, first_order FROM gift WHERE request IS NOT NULL
),
above AS (
    SELECT filed.node, arg_max(known.node, known.label) AS parent
    FROM filed
    JOIN known
      ON known.request = filed.request AND known."order" <= filed.first_order
     AND known.label < filed.label
    GROUP BY filed.node
)
SELECT filed.*, parent, coalesce(reads, 0) AS reads,
       coalesce(len(wrong_pools), 0) AS wrong,
       coalesce(label % grid <> 0, FALSE) AS off_grid,
       count(*) OVER () AS total,
       count(*) FILTER (len(wrong_pools) > 0 OR label % grid <> 0) OVER () AS wrong_total
FROM filed
LEFT JOIN read USING (node)
LEFT JOIN above USING (node)
WHERE held OR NOT $held
ORDER BY wrong > 0 OR off_grid DESC, node IS NOT DISTINCT FROM $first DESC, held DESC,
         first_order DESC
LIMIT $limit
