-- id: D4
-- name: commit
-- severity: corruption
-- invariant: a verify that was read has exactly one commit for each request in its plan, on each
--   pipeline stage; it reads what that verify left in scratch; it moves the live state by
--   accept_len tokens, at least one, and moves window and SSM state alike; the next act begins at
--   that depth. Where it passes a depth on its plan's grid, and the plan names a slot for that, the
--   state there is saved.
-- needs: verify.plan, scatter, forward.launch, forward.done
-- blind where: op = 'scatter' AND role = 'live' AND depth IS NULL AND NOT in_vain(outcome)
-- evidence: the plan and the forward's done where the commit is missing, else the commits, or the
--   commit and the act that begins elsewhere; where scratch was overwritten, both plans and the
--   commit; where nothing was saved, or a part stayed behind, the plan and the commit.
-- example: r7+ r7+live3 P1 1:3@0 1:3@0>64 /1 V2 2:r7?@64 /2 V3
-- false positives: none known. A verify is judged only after its process launched or read another
--   forward or ended the request, as the host says the commit when it retires the result.
-- explains: D4 request, D4 lease, D1 request, D1 lease, D2 request
WITH beat AS (
    SELECT process, forward, event, op, request, "order"
    FROM seen
    WHERE op IN ('forward.launch', 'forward.done', 'request.end')
),
last_beat AS (
    SELECT process, max("order") FILTER (op <> 'request.end') AS last_order
    FROM beat
    GROUP BY process
),
plan AS (
    SELECT p.process, p.forward, p.request, p.event, COALESCE(p.pool, 0) AS pool, p.position,
           p.time_ns, p.depth_before, done.event AS done_event,
           p.slot AS target, p.generation, p.grid,
           CASE WHEN p.micro_batch IS NULL THEN ''
                ELSE format(' of micro-batch {}, on {},', p.micro_batch,
                            stage_name(p.process, p.pool)) END AS whereabouts
    FROM seen p
    JOIN beat done
      ON done.process = p.process AND done.forward = p.forward AND done.op = 'forward.done'
    -- A launch that is not seen lies where records were lost, and its commit may too.
    SEMI JOIN beat launched
           ON launched.process = p.process AND launched.forward = p.forward
          AND launched.op = 'forward.launch'
    JOIN last_beat ON last_beat.process = p.process
    LEFT JOIN beat ended
           ON ended.process = p.process AND ended.request = p.request AND ended.op = 'request.end'
    WHERE p.op = 'verify.plan'
      AND (last_order > done."order" OR ended."order" > done."order")
),
live_scatter AS (
    SELECT *, act_name(op, role, forward, event) AS the_commit
    FROM seen
    WHERE op = 'scatter' AND role = 'live' AND NOT in_vain(outcome)
),
commits AS (
    SELECT process, COALESCE(pool, 0) AS pool, forward, request, component,
           list(event ORDER BY "order", seq) AS events
    FROM live_scatter
    GROUP BY ALL
),
-- The live slot of a request, for plans whose commit could have named it.
home AS (
    SELECT process, request, pool, slot, generation, position
    FROM fold
    WHERE op = 'allocate' AND role = 'live'
),
uncommitted AS (
    SELECT p.process, p.pool, h.slot, h.generation, p.request, p.forward,
           p.position, p.time_ns,
           CASE WHEN c.events IS NULL THEN [p.event, p.done_event] ELSE c.events END AS witness,
           CASE WHEN c.events IS NULL
                THEN format('Let forward {}{} verify {} from {} tokens on ({}); then its result '
                            || 'was read ({}); however, no commit moved {} by what it accepted: the '
                            || 'state stays behind the tokens that were sent, a contradiction.',
                            p.forward, p.whereabouts, request_name(p.process, p.request), p.depth_before,
                            event_name(p.event), event_name(p.done_event),
                            COALESCE(lease_name(h.slot, h.generation), 'the live state'))
                ELSE format('Let forward {}{} verify {} once ({}); however, {} commits of it were '
                            || 'said {}: the state moves once for each, a contradiction.',
                            p.forward, p.whereabouts, request_name(p.process, p.request), event_name(p.event),
                            len(c.events),
                            list_transform(c.events, lambda e: event_name(e)))
           END AS because
    FROM plan p
    LEFT JOIN commits c USING (process, pool, forward, request)
    ASOF LEFT JOIN home h
           ON h.process = p.process AND h.pool = p.pool AND h.request = p.request
          AND h.position <= p.position
    WHERE COALESCE(len(c.events), 0) <> 1
),
-- A commit that names components, and leaves one behind. All recurrent states have an SSM part; that
-- the pool has windows too is known where any act names them. Rings and side states need not move.
windowed AS (
    SELECT DISTINCT process, COALESCE(pool, 0) AS pool
    FROM seen
    WHERE component = 'conv' AND slot > 0
),
halved AS (
    SELECT p.process, p.pool, c.slot, c.generation, p.request, p.forward, c.position, c.time_ns,
           [p.event, c.event] AS witness,
           format('Let forward {}{} verify {} ({}); however, {} moves {} of it alone: window and '
                  || 'SSM state stand at different tokens from then on, a contradiction.',
                  p.forward, p.whereabouts, request_name(p.process, p.request),
                  event_name(p.event), c.the_commit, c.component) AS because
    FROM plan p
    JOIN live_scatter c
      ON c.process = p.process AND COALESCE(c.pool, 0) = p.pool AND c.forward = p.forward
     AND c.request = p.request
    LEFT JOIN windowed w ON w.process = p.process AND w.pool = p.pool
    ANTI JOIN live_scatter other
           ON other.process = p.process AND COALESCE(other.pool, 0) = p.pool
          AND other.forward = p.forward AND other.request = p.request
          AND other.component IS DISTINCT FROM c.component
    WHERE c.component = 'conv' OR c.component = 'ssm' AND w.process IS NOT NULL
),
astray AS (
    SELECT process, pool, slot, generation, request, forward, position, time_ns, [event] AS witness,
           format('Let {} move {} from {} tokens by {} accepted tokens; however, it left {} '
                  || 'tokens: a commit moves the state by what was accepted, at least the root, a '
                  || 'contradiction.',
                  the_commit, lease_name(slot, generation), depth_before, accept_len, depth)
               AS because
    FROM live_scatter
    WHERE slot > 0
      AND (accept_len < 1 OR depth <> depth_before + accept_len)
),
elsewhere AS (
    SELECT f.process, f.pool, f.slot, f.generation, f.request, f.forward, f.position, f.time_ns,
           [c.event, f.event] AS witness,
           format('Let {} leave {} at {} tokens; however, {} begins at {}: tokens are {} the '
                  || 'recurrence, a contradiction.',
                  act_name(c.op, c.role, c.forward, c.event), lease_name(f.slot, f.generation),
                  f.depth_was, act_name(f.op, f.role, f.forward, f.event), f.depth_before,
                  CASE WHEN f.depth_before > f.depth_was THEN 'missing from' ELSE 'twice in' END)
               AS because
    FROM fold f
    JOIN fold c ON c.line = f.left_by
    WHERE f.live_was
      AND (f.op = 'advance' OR f.op = 'scatter' AND f.role = 'live')
      AND f.depth_before <> f.depth_was
      AND c.op = 'scatter' AND c.role = 'live'
      -- Components may be committed one by one; the same one twice is argued above.
      AND c.forward IS DISTINCT FROM f.forward
),
-- A slot that a crossing's state was to go to, and that nothing went to.
unsaved AS (
    SELECT p.process, p.pool, p.target AS slot, p.generation, p.request, p.forward, p.position,
           p.time_ns, [p.event, c.event] AS witness,
           format('Let forward {}{} give {} {} for the state at a depth it may pass ({}); then {} '
                  || 'moved it from {} to {} tokens, past {}; however, no state was saved there: '
                  || 'whoever takes the slot for a state of {} tokens gets another, a contradiction.',
                  p.forward, p.whereabouts, request_name(p.process, p.request),
                  lease_name(p.target, p.generation), event_name(p.event), c.the_commit,
                  c.depth_before, c.depth, c.depth // p.grid * p.grid, c.depth // p.grid * p.grid)
               AS because
    FROM plan p
    JOIN live_scatter c
      ON c.process = p.process AND COALESCE(c.pool, 0) = p.pool AND c.forward = p.forward
     AND c.request = p.request AND COALESCE(c.component, 'ssm') = 'ssm'
    ANTI JOIN seen t
           ON t.process = p.process AND COALESCE(t.pool, 0) = p.pool AND t.forward = p.forward
          AND t.request = p.request AND t.op = 'scatter' AND t.role IN ('keep', 'spare')
    WHERE p.target > 0
      AND p.grid > 0
      AND c.depth // p.grid > c.depth_before // p.grid
),
-- What each verify left in scratch, and which plan was the next to use the same row.
scratch AS (
    SELECT process, pool, forward, request, micro_batch, src_row, event, "order",
           lead(event) OVER later AS next_event, lead("order") OVER later AS next_order,
           lead(forward) OVER later AS next_forward, lead(request) OVER later AS next_request,
           lead(micro_batch) OVER later AS next_micro_batch
    FROM seen
    WHERE op = 'verify.plan' AND src_row IS NOT NULL
    WINDOW later AS (PARTITION BY process, pool, src_row ORDER BY "order", seq)
),
-- On a stage that waits for a relayed result, later verifies come between a verify and its commit,
-- though its forward was launched before theirs.
overwritten AS (
    SELECT c.process, c.pool, c.slot, c.generation, c.request, c.forward, c.position, c.time_ns,
           [s.event, s.next_event, c.event] AS witness,
           format('Let forward {} of micro-batch {}, on {}, leave the states of {} in scratch row '
                  || '{} ({}); then forward {} of micro-batch {} left those of {} there ({}); '
                  || 'however, {} takes them for its own: {} gets the state of another verify, a '
                  || 'contradiction.',
                  s.forward, s.micro_batch, stage_name(s.process, s.pool),
                  request_name(s.process, s.request), s.src_row, event_name(s.event),
                  s.next_forward, s.next_micro_batch, request_name(s.process, s.next_request),
                  event_name(s.next_event), act_name(c.op, c.role, c.forward, c.event),
                  request_name(c.process, c.request)) AS because
    FROM scratch s
    JOIN seen r ON r.op = 'relay.receive' AND r.process = s.process AND r.pool = s.pool
               AND r.forward = s.forward AND r.request = s.request
    JOIN live_scatter c ON c.process = s.process AND c.pool = s.pool
                       AND c.forward = s.forward AND c.request = s.request
                       AND c.src_row = s.src_row
    WHERE s.next_order < r."order"
)
FROM uncommitted
UNION ALL
FROM halved
UNION ALL
FROM overwritten
UNION ALL
FROM unsaved
UNION ALL
FROM astray
UNION ALL
FROM elsewhere
