-- The slots to draw: those touched in the window, and by the request where one is asked for.
-- When there are more than $limit, those in $first stay, and then the busiest. slots: empty = all.
WITH lane AS (
    SELECT pool, slot,
           count(*) FILTER (x BETWEEN $low AND $high) AS acts,
           count(*) FILTER (op = 'allocate')          AS leases,
           bool_or(request_id = $request)             AS touched
    FROM acts
    WHERE slot IS NOT NULL
    GROUP BY pool, slot
)
SELECT pool, slot, acts, leases, count(*) OVER () AS total
FROM lane
WHERE (len($slots) = 0 OR list_contains($slots, slot))
  AND ($request IS NULL OR touched)
QUALIFY row_number() OVER (ORDER BY list_contains($first, slot) DESC, acts DESC, pool, slot) <= $limit
ORDER BY pool, slot
