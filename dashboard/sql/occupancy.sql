-- How many slots of a pool are what at the end of each of $bins parts of the axis: live, keep, spare,
-- scratch, cached (a node has it), and how many of the nodes are locked by a request. `peak` is the
-- most that were it at once in that part: what lives for a moment is seen there alone.
WITH change AS (
    SELECT slot, role, position, "order", seq,
           CASE WHEN $axis = 'time' THEN (time_ns - $zero) / 1e9 ELSE position::DOUBLE END AS x
    FROM ownership
    WHERE process = $process
      AND pool = $pool
),
stretch AS (
    SELECT CASE role WHEN 'node' THEN 'cached' ELSE role END AS state, x,
           lead(x) OVER (PARTITION BY slot ORDER BY position, "order", seq) AS next_x
    FROM change
),
lock AS (
    SELECT node, x, op,
           sum(CASE op WHEN 'lock' THEN 1 ELSE -1 END) OVER (PARTITION BY node ORDER BY "order", seq)
               AS held
    FROM acts
    WHERE op IN ('lock', 'unlock')
      AND node IS NOT NULL
),
step AS (
    SELECT state, x, 1 AS delta FROM stretch WHERE state IS NOT NULL
    UNION ALL
    SELECT state, next_x, -1 FROM stretch WHERE state IS NOT NULL AND next_x IS NOT NULL
    UNION ALL
    SELECT 'locked', x, CASE op WHEN 'lock' THEN 1 ELSE -1 END
    FROM lock
    WHERE (op = 'lock' AND held = 1) OR (op = 'unlock' AND held = 0)
),
counted AS (
    SELECT state, delta,
           greatest(least(floor((x - $low) / ($high - $low) * $bins), $bins - 1), -1)::INTEGER AS bin,
           sum(delta) OVER (PARTITION BY state ORDER BY x, delta
                            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS at_once
    FROM step
    WHERE x <= $high
),
summed AS (
    SELECT state, bin, sum(delta) AS delta, max(at_once) AS peak
    FROM counted
    GROUP BY state, bin
),
every AS (
    SELECT state, bin
    FROM (SELECT DISTINCT state FROM summed), (SELECT unnest(range(-1, $bins)) AS bin)
)
SELECT state, bin,
       sum(coalesce(delta, 0)) OVER (PARTITION BY state ORDER BY bin)::INTEGER AS slots,
       greatest(peak, slots)::INTEGER AS peak
FROM every
LEFT JOIN summed USING (state, bin)
QUALIFY bin >= 0
ORDER BY bin, state
