-- All that was said of one forward on one stage, as it was said, and its launch and result.
SELECT op, kind, micro_batch, role, outcome, slot, generation, request_id, depth_before, depth,
       accept_len, "row", src_row, step, x, format('{}.{}', writer, seq) AS event
FROM acts
WHERE forward = $forward
  AND (pool = $pool OR pool IS NULL OR op IN ('forward.launch', 'forward.done', 'relay.send'))
ORDER BY "order", seq
LIMIT $limit
