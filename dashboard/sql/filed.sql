-- All that happened to a node, and to the leases that it was given, as it took effect.
WITH lease AS (
    SELECT DISTINCT pool, slot, generation
    FROM acts
    WHERE node = $node
      AND op IN ('donate', 'insert')
      AND slot IS NOT NULL
)
SELECT op, kind, role, outcome, node, label, depth, grid, slot, pool, generation, src_slot,
       request_id, forward, depth_before, position, x, format('{}.{}', writer, seq) AS event
FROM acts
WHERE node = $node
   OR (pool, slot, generation) IN (SELECT (pool, slot, generation) FROM lease)
   OR (pool, src_slot, src_generation) IN (SELECT (pool, slot, generation) FROM lease)
ORDER BY position, "order", seq
LIMIT $limit
