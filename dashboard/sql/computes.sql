-- What each stage computes when: one row per stage and forward, in the window, the first $limit.
--
-- x is where the stage says its first act of the forward. No event tells where it ends; it is over
-- at the latest when the stage begins another one, the next stage begins this one, what was accepted
-- is sent, or the result is read.
WITH said AS (
    SELECT process, coalesce(pool, 0) AS pool, forward, op, kind, micro_batch, request, "order",
           CASE WHEN $axis = 'time' THEN (time_ns - $zero) / 1e9 ELSE "order"::DOUBLE END AS x
    FROM events
    WHERE micro_batch IS NOT NULL
      AND op IN ('clear', 'restore', 'advance', 'verify.plan', 'relay.send', 'forward.done')
      AND ($axis = 'time' OR process = $process)
),
over AS (
    SELECT process, forward, min(x) AS end_x
    FROM said
    WHERE op IN ('relay.send', 'forward.done')
    GROUP BY process, forward
),
begun AS (
    SELECT process, pool, forward,
           any_value(kind)          AS kind,
           any_value(micro_batch)   AS micro_batch,
           count(DISTINCT request)  AS requests,
           min(x)                   AS x
    FROM said
    WHERE op NOT IN ('relay.send', 'forward.done')
    GROUP BY process, pool, forward
),
bar AS (
    SELECT begun.*,
           least(lead(x) OVER (PARTITION BY process, pool ORDER BY x),
                 lead(x) OVER (PARTITION BY process, forward ORDER BY pool),
                 end_x, $high) AS x2
    FROM begun
    LEFT JOIN over USING (process, forward)
)
SELECT process, pool, forward, kind, micro_batch, requests,
       greatest(x, $low) AS x, greatest(x, x2, $low) AS x2, count(*) OVER () AS total
FROM bar
WHERE x <= $high
  AND x2 >= $low
ORDER BY bar.x, pool
LIMIT $limit
