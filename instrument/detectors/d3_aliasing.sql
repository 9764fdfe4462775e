-- id: D3
-- name: aliasing
-- severity: corruption
-- invariant: only the owner of a lease writes it or reads it: no write reaches it after it went to
--   the tree, none comes from another request, and a restore reads what the tree holds. Acts of two
--   streams on one state are ordered by the first one's forward.done.
-- needs: allocate, free, clear, advance, scatter, copy, restore, donate, insert, forward.launch
-- evidence: the act that made the owner, and the act of somebody else.
-- example: r7+ r7+live3 r7+keep5 P1 1:3@0 1:5^192 /1 5!192n2 V2 2:5^256
-- false positives: none known. A slot that is freed, reused or donated while a launched forward
--   still names it is right: on one stream that forward writes first. Acts stand at their launch.
-- explains: D3 lease, D1 lease, D11 lease
WITH stranger AS (
    SELECT *,
           CASE WHEN writes AND tree_was AND op <> 'load_back' THEN 'given'
                WHEN (writes OR reads AND op = 'copy') AND owner_was <> request THEN 'foreign'
                WHEN reads AND op = 'restore' AND owner_was IS NOT NULL THEN 'private'
           END AS fault
    FROM fold
    WHERE live_was
),
-- Only slots that more than one stream touches can have unordered acts.
crossing AS (
    SELECT process, pool, slot
    FROM fold
    WHERE writes OR reads
    GROUP BY process, pool, slot
    HAVING max(COALESCE(stream, 0)) > min(COALESCE(stream, 0))
),
done AS (
    SELECT process, forward, min("order") AS done_at
    FROM seen
    WHERE op = 'forward.done'
    GROUP BY process, forward
),
unordered AS (
    SELECT f.*, 'unordered' AS fault
    FROM fold f
    JOIN crossing USING (process, pool, slot)
    JOIN fold w ON w.line = f.left_by
    LEFT JOIN done d ON d.process = w.process AND d.forward = w.forward
    WHERE (f.writes OR f.reads)
      AND w.writes
      AND COALESCE(f.stream, 0) <> COALESCE(w.stream, 0)
      AND COALESCE(d.done_at > f.position, TRUE)
),
found AS (
    FROM stranger WHERE fault IS NOT NULL
    UNION ALL BY NAME
    FROM unordered
)
SELECT f.process, f.pool, f.slot, f.generation, f.request, f.forward, f.position, f.time_ns,
       [made.event, f.event] AS witness,
       format('Let {} '
              || CASE f.fault
                     WHEN 'given' THEN 'go to {} by {}; then nobody may write it; '
                     WHEN 'unordered' THEN
                         'be written on stream {} by {}, whose result nobody awaited; '
                     ELSE 'belong to {} by {}; ' END
              || 'however, {} of {} {} at {}: '
              || CASE f.fault
                     WHEN 'given' THEN 'who restores the node gets another state than was filed'
                     WHEN 'foreign' THEN 'two requests share one state'
                     WHEN 'private' THEN
                         'a request resumes with a state that the tree does not hold'
                     ELSE 'the acts may run in either order' END
              || ', a contradiction.',
              lease_name(f.slot, f.generation),
              CASE f.fault
                  WHEN 'given' THEN node_name(made.node)
                  WHEN 'unordered' THEN COALESCE(made.stream, 0)::VARCHAR
                  ELSE request_name(made.process, made.request) END,
              act_name(made.op, made.role, made.forward, made.event),
              act_name(f.op, f.role, f.forward, f.event),
              request_name(f.process, f.request),
              CASE WHEN f.reads THEN 'read it'
                   ELSE 'wrote ' || COALESCE(f.depth || ' tokens', 'a state') END,
              f.position) AS because
FROM found f
JOIN fold made
  ON made.line = CASE WHEN f.fault = 'unordered' THEN f.left_by ELSE f.since_was END
