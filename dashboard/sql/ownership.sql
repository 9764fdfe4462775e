-- Who holds each slot: one row per stretch of one owner and one role, cut to the window.
--
-- An owner changes by allocate, donate, insert and free; a role also by swap, which names the slot
-- that is keep from now on and, as src_slot, the one that no longer is.
-- Of the stretches that begin in one pixel of a lane, the longest is drawn and `folded` counts them.
WITH said AS (
    SELECT pool, slot, generation, position, "order", seq, x, op, role, request, request_id, node
    FROM acts
    WHERE op IN ('allocate', 'free', 'donate', 'insert')
      AND slot IS NOT NULL
      AND coalesce(outcome, 'ok') NOT IN ('suppressed', 'failed', 'exists')
    UNION ALL
    SELECT pool, slot, generation, position, "order", seq, x, op, 'keep', request, request_id, NULL
    FROM acts
    WHERE op = 'swap'
      AND slot IS NOT NULL
    UNION ALL
    SELECT pool, src_slot, src_generation, position, "order", seq, x, op, 'spare',
           request, request_id, NULL
    FROM acts
    WHERE op = 'swap'
      AND src_slot IS NOT NULL
),
-- From a donate on, the tree owns the slot, whoever gave it.
owned AS (
    SELECT * REPLACE (
        CASE WHEN op IN ('donate', 'insert') THEN 'node' ELSE role END AS role,
        CASE WHEN op IN ('donate', 'insert') THEN NULL ELSE request END AS request,
        CASE WHEN op IN ('donate', 'insert') THEN NULL ELSE request_id END AS request_id
    )
    FROM said
),
-- A slot that the tree holds already is not taken from it by a late swap.
settled AS (
    SELECT *
    FROM owned
    WINDOW life AS (PARTITION BY pool, slot ORDER BY position, "order", seq)
    QUALIFY op <> 'swap' OR lag(role) OVER life IS DISTINCT FROM 'node'
),
change AS (
    SELECT *
    FROM settled
    WINDOW life AS (PARTITION BY pool, slot ORDER BY position, "order", seq)
    QUALIFY lag((op = 'free', role, request, node)) OVER life
            IS DISTINCT FROM (op = 'free', role, request, node)
),
stretch AS (
    SELECT *, lead(x) OVER life AS next_x
    FROM change
    WINDOW life AS (PARTITION BY pool, slot ORDER BY position, "order", seq)
)
SELECT pool, slot, generation, role, request, request_id, node,
       greatest(x, $low)                      AS x,
       least(coalesce(next_x, $high), $high)  AS x2,
       next_x IS NULL                         AS held,
       count(*) OVER pixel                    AS folded
FROM stretch
WHERE op <> 'free'
  AND x <= $high
  AND coalesce(next_x, $high) >= $low
  AND list_contains($lanes, slot)
  AND ($role IS NULL OR role = $role)
WINDOW pixel AS (PARTITION BY pool, slot, floor((greatest(x, $low) - $low) / $pixel))
QUALIFY row_number() OVER (
    PARTITION BY pool, slot, floor((greatest(x, $low) - $low) / $pixel)
    ORDER BY coalesce(next_x, $high) - x DESC, position
) = 1
ORDER BY pool, slot, x
