-- How the results of verifies were paired, over the whole axis: counts by part of the axis, and where
-- in each the first one lies.
WITH placed AS (
    SELECT pairing,
           CASE WHEN $axis = 'time'
                THEN (coalesce(commit_ns, result_ns, done_ns, plan_ns) - $zero) / 1e9
                ELSE coalesce(commit_order, result_order, done_order, plan_order)::DOUBLE END AS x
    FROM relays
    WHERE $axis = 'time' OR process = $process
)
SELECT pairing,
       least(floor((x - $low) / ($high - $low) * $bins), $bins - 1)::INTEGER AS bin,
       count(*) AS verifies,
       min(x)   AS x
FROM placed
GROUP BY pairing, bin
ORDER BY pairing, bin
