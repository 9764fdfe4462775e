-- Where a lease's state came from: the lease itself at distance 0, those that it was restored or
-- copied from at distance 1, and so on, at most 64. `op` says how the nearer one got it.
--
--   FROM lineage(7, 3)            -- slot 7 in generation 3
--   FROM lineage(7, 3, p := 1)    -- of pool 1; proc := 2 is process 2
CREATE MACRO lineage(s, g, p := 0, proc := 0) AS TABLE
WITH RECURSIVE line AS (
    SELECT 0 AS distance, proc::INTEGER AS process, p::INTEGER AS pool, s::INTEGER AS slot,
           g::INTEGER AS generation, NULL::VARCHAR AS op
    UNION
    SELECT distance + 1, e.process, e.pool, e.src_slot, e.src_generation, e.op::VARCHAR
    FROM line
    JOIN events AS e USING (process, pool, slot, generation)
    WHERE distance < 64
      AND e.op IN ('restore', 'copy')
      AND e.src_slot IS NOT NULL
)
SELECT line.*, leases.* EXCLUDE (process, pool, slot, generation)
FROM line
LEFT JOIN leases USING (process, pool, slot, generation)
ORDER BY distance, process, pool, slot, generation;
