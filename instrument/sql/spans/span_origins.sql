-- Where a checkpoint came from: a restore links to the donate of the lease that it read, a donate
-- to the last write of its lease. Both are searched at or before the position of the reader.
CREATE OR REPLACE VIEW span_origins AS
WITH donates AS (
    SELECT * FROM span_contexts
    WHERE op = 'donate' AND generation IS NOT NULL AND outcome IS DISTINCT FROM 'suppressed'
), writes AS (
    SELECT * FROM span_contexts
    WHERE op IN ('scatter', 'copy', 'advance', 'restore', 'clear', 'load_back', 'transfer.receive')
      AND generation IS NOT NULL
), restores AS (
    SELECT * FROM span_contexts
    WHERE op = 'restore' AND src_generation IS NOT NULL
)
SELECT r.event, d.trace_id, d.span_id, 'donate' AS reason
FROM restores AS r
ASOF JOIN donates AS d
  ON r.process = d.process AND r.pool = d.pool
 AND r.src_slot = d.slot AND r.src_generation = d.generation
 AND (r.position, r."order", r.seq) >= (d.position, d."order", d.seq)
UNION ALL
SELECT d.event, w.trace_id, w.span_id, 'write' AS reason
FROM donates AS d
ASOF JOIN writes AS w
  ON d.process = w.process AND d.pool = w.pool
 AND d.slot = w.slot AND d.generation = w.generation
 AND (d.position, d."order", d.seq) >= (w.position, w."order", w.seq);
