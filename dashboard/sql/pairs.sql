-- Verifies whose plan, result or commit lies in the window, wrong pairs first, $limit at most.
WITH placed AS (
    SELECT process, pool, forward, micro_batch, requests, commit_forward, commit_micro_batch,
           refused, pairing, sent_pool,
           CASE WHEN $axis = 'time' THEN (plan_ns - $zero) / 1e9 ELSE plan_order END::DOUBLE AS plan_x,
           CASE WHEN $axis = 'time' THEN (sent_ns - $zero) / 1e9 ELSE sent_order END::DOUBLE AS sent_x,
           CASE WHEN $axis = 'time' THEN (result_ns - $zero) / 1e9
                ELSE result_order END::DOUBLE AS result_x,
           CASE WHEN $axis = 'time' THEN (commit_ns - $zero) / 1e9
                ELSE commit_order END::DOUBLE AS commit_x,
           CASE WHEN $axis = 'time' THEN (done_ns - $zero) / 1e9 ELSE done_order END::DOUBLE AS done_x
    FROM relays
    WHERE $axis = 'time' OR process = $process
)
SELECT *, count(*) OVER () AS total
FROM placed
WHERE plan_x <= $high
  AND coalesce(commit_x, result_x, done_x, plan_x) >= $low
ORDER BY pairing IN ('right', 'open'), plan_x, pool
LIMIT $limit
