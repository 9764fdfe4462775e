-- The stages of a pipeline: pools of a process that compute micro-batches. Times of processes of one
-- host compare, their orders don't: on the order axis there are the stages of one process.
SELECT process, coalesce(pool, 0) AS pool, count(DISTINCT forward) AS forwards
FROM events
WHERE micro_batch IS NOT NULL
  AND op IN ('advance', 'verify.plan')
  AND ($axis = 'time' OR process = $process)
GROUP BY process, coalesce(pool, 0)
ORDER BY process, pool
LIMIT $limit
