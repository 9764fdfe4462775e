-- Where a checkpoint came from: a restore links to the donate of the lease that it read, a donate
-- to the last write of its lease. Both are searched at or before the position of the reader.
CREATE OR REPLACE VIEW span_origins AS
WITH donates AS (
    SELECT * FROM events
    WHERE op = 'donate' AND generation IS NOT NULL
      AND coalesce(outcome, 'ok') NOT IN ('suppressed', 'exists')
), writes AS (
    SELECT * FROM events
    WHERE op IN ('scatter', 'copy', 'advance', 'restore', 'clear', 'load_back', 'transfer.receive')
      AND generation IS NOT NULL
), found AS (
    SELECT r.writer, r.seq, 'donate' AS reason,
           d.process, d.request, d.forward, d.writer AS origin_writer, d.seq AS origin_seq
    FROM events AS r
    ASOF JOIN donates AS d
      ON r.process = d.process AND r.pool = d.pool
     AND r.src_slot = d.slot AND r.src_generation = d.generation
     AND (r.position, r."order", r.seq) >= (d.position, d."order", d.seq)
    WHERE r.op = 'restore'
    UNION ALL
    SELECT d.writer, d.seq, 'write' AS reason,
           w.process, w.request, w.forward, w.writer AS origin_writer, w.seq AS origin_seq
    FROM donates AS d
    ASOF JOIN writes AS w
      ON d.process = w.process AND d.pool = w.pool
     AND d.slot = w.slot AND d.generation = w.generation
     AND (d.position, d."order", d.seq) >= (w.position, w."order", w.seq)
)
SELECT writer, seq, reason,
       span_trace_id(process, request, forward, remote_trace_id) AS origin_trace_id,
       event_span_id(origin_writer, origin_seq) AS origin_span_id
FROM found
LEFT JOIN span_remotes USING (process, request);
