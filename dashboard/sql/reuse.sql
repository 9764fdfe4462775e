-- How requests began in each of $bins parts of the axis: from a checkpoint (restored) or from nothing
-- (cleared), and how many tokens that saved of those that they came with.
SELECT least(floor((x - $low) / ($high - $low) * $bins), $bins - 1)::INTEGER AS bin,
       count(*) FILTER (op = 'restore')                AS restored,
       count(*) FILTER (op = 'clear')                  AS cleared,
       coalesce(sum(label) FILTER (op = 'restore'), 0)::BIGINT       AS reused,
       coalesce(sum(label) FILTER (op = 'request.begin'), 0)::BIGINT AS asked
FROM acts
WHERE x BETWEEN $low AND $high
  AND (op = 'request.begin'
       OR (op IN ('restore', 'clear') AND pool = $pool AND request IS NOT NULL))
GROUP BY bin
ORDER BY bin
