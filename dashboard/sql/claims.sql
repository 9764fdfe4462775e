-- Where a request's states are saved or named: tracks into its keep and spare slots, and the depths
-- that are claimed where a state is donated, filed, matched, restored or swapped.
-- `state_depth` is the depth that the named lease has by all writes that take effect before.
WITH lease AS (
    SELECT DISTINCT pool, slot, generation
    FROM acts
    WHERE request_id = $request
      AND slot IS NOT NULL
),
life AS (
    SELECT op, role, outcome, pool, slot, generation, src_slot, node, label, depth, grid, forward,
           request_id, x, position, "order", writer, seq,
           last_value(CASE WHEN op = 'allocate' THEN -1
                           WHEN op IN ('clear', 'restore', 'advance', 'scatter', 'copy', 'load_back',
                                       'transfer.receive')
                                AND coalesce(outcome, 'ok') <> 'failed' THEN depth
                      END IGNORE NULLS) OVER lives AS state
    FROM acts
    SEMI JOIN lease USING (pool, slot, generation)
    WINDOW lives AS (PARTITION BY pool, slot, generation ORDER BY position, "order", seq)
)
SELECT op, role, outcome, pool, slot, generation, src_slot, node, label, depth, grid, forward, x,
       nullif(state, -1) AS state_depth,
       op IN ('donate', 'insert', 'match', 'restore', 'swap') AS claim,
       format('{}.{}', writer, seq) AS event
FROM life
WHERE (request_id = $request OR (op = 'insert' AND request_id IS NULL))
  AND coalesce(outcome, 'ok') <> 'suppressed'
  AND x BETWEEN $low AND $high
  AND ((op IN ('scatter', 'copy') AND role IN ('keep', 'spare'))
       OR (op IN ('donate', 'insert', 'match', 'restore', 'swap') AND label IS NOT NULL))
ORDER BY state IS DISTINCT FROM label AND claim DESC, position, "order", seq
LIMIT $limit
