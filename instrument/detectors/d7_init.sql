-- id: D7
-- name: init
-- severity: corruption
-- invariant: a lease is initialised once before the first act that reads its state: by a clear, a
--   restore, a load_back or a receive. None comes later: a plan to clear or to restore runs once.
-- needs: allocate, free, clear, restore, advance, scatter, load_back, transfer.receive,
--   forward.launch
-- evidence: the allocate and the act that reads what the last tenant left; or the last write and
--   the act that wipes it out.
-- example: r7+ r7+live3 P1 1:3@0>64
-- false positives: an engine whose kernels begin an empty state by themselves, without a clear,
--   must say the clear all the same.
-- explains: D7 lease, D1 lease, D1 request, D2 lease, D2 request, D4 lease
WITH init AS (
    SELECT *,
           CASE WHEN op IN ('advance', 'scatter') AND (op = 'advance' OR role = 'live')
                     AND NOT written_was THEN 'stale'
                WHEN op IN ('clear', 'restore', 'load_back', 'transfer.receive') AND writes
                     AND written_was THEN 'again' END AS fault
    FROM fold
    WHERE live_was
      AND NOT tree_was
      AND op IN ('advance', 'scatter', 'clear', 'restore', 'load_back', 'transfer.receive')
),
-- A state may come back in parts, each of which is said once.
part AS (
    SELECT event, component
    FROM seen
    WHERE op IN ('load_back', 'transfer.receive')
)
SELECT f.process, f.pool, f.slot, f.generation, f.request, f.forward, f.position, f.time_ns,
       [made.event, f.event] AS witness,
       CASE f.fault
           WHEN 'stale' THEN
               format('Let {} be allocated for {} ({}); then nothing cleared or restored it; '
                      || 'however, {} begins with what is in it: the state that the last tenant '
                      || 'left, a contradiction.',
                      lease_name(f.slot, f.generation), request_name(made.process, made.request),
                      event_name(made.event), act_name(f.op, f.role, f.forward, f.event))
           ELSE
               format('Let {} hold a state of {} tokens since {}; however, {} sets it to {} tokens: '
                      || 'a lease begins once, and what was computed since is lost, a contradiction.',
                      lease_name(f.slot, f.generation), COALESCE(f.depth_was::VARCHAR, 'some'),
                      act_name(made.op, made.role, made.forward, made.event),
                      act_name(f.op, f.role, f.forward, f.event),
                      COALESCE(f.depth::VARCHAR, 'other')) END AS because
FROM init f
JOIN fold made ON made.line = f.left_by
LEFT JOIN part p ON p.event = f.event
WHERE f.fault = 'stale'
   OR f.fault = 'again' AND p.component IS NULL
