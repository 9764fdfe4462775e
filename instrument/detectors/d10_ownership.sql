-- id: D10
-- name: ownership
-- severity: corruption
-- invariant: every slot has exactly one owner at every step: a slot is allocated while free and
--   freed while allocated, acts touch allocated slots only, the pad slot is never handed out,
--   requests that ended or were retracted get no slot, requests that get one begin, and what a
--   request or a node gave up is freed.
-- needs: allocate, free, donate, insert, evict, request.begin, request.end, forward.launch,
--   forward.done
-- evidence: the act that made the owner, or gave it up, and the act that contradicts it; for a
--   leak, the launch by which the slot had to be free.
-- example: r7+ r7+live3 r9+ r9+live3
-- false positives: slots that were allocated before the trace began look free. Start the probe
--   before the pool.
-- rule: a slot must be free or given once all forwards that were launched before its request ended,
--   or before its node was evicted, have been read, and then another forward is launched. An engine
--   may so defer a free until no open forward names the slot, and no longer. A request with a slot
--   must have begun when a forward that was launched afterwards has been read.
-- explains: D10 slot, D3 slot, D2 slot, D1 slot
WITH wrong AS (
    SELECT *,
           CASE WHEN slot <= 0 THEN 'pad'
                WHEN op = 'allocate' AND live_was THEN 'twice'
                WHEN op = 'free' AND NOT live_was THEN 'freed'
                WHEN op NOT IN ('allocate', 'free') AND NOT live_was THEN 'dead' END AS fault
    FROM fold
    WHERE known_was
      AND NOT in_vain(outcome)
),
misplaced AS (
    SELECT w.process, w.pool, w.slot, w.generation, w.request, w.forward, w.position, w.time_ns,
           list_filter([made.event, w.event], lambda e: e IS NOT NULL) AS witness,
           CASE w.fault
               WHEN 'pad' THEN
                   format('Let slot {} take the writes of padding; however, {} for {} hands it out '
                          || 'or takes it back like any other: whoever gets it shares it with '
                          || 'every padded row, a contradiction.',
                          w.slot, act_name(w.op, w.role, w.forward, w.event),
                          request_name(w.process, w.request))
               WHEN 'twice' THEN
                   format('Let {} be held by {} since {}; then nobody freed it; however, it was '
                          || 'allocated for {} ({}): two owners write one state, a contradiction.',
                          lease_name(w.slot, made.generation),
                          CASE WHEN w.tree_was THEN COALESCE('node ' || made.node, 'the tree')
                               ELSE request_name(made.process, made.request) END,
                          act_name(made.op, made.role, made.forward, made.event),
                          request_name(w.process, w.request), event_name(w.event))
               ELSE
                   format('Let slot {} be free since {}; however, {}{} {}, a contradiction.',
                          w.slot,
                          COALESCE(act_name(made.op, made.role, made.forward, made.event),
                                   'the trace began'),
                          act_name(w.op, w.role, w.forward, w.event),
                          COALESCE(' of ' || request_name(w.process, w.request), ''),
                          CASE WHEN w.op = 'free'
                               THEN 'frees it again: it will be handed out twice'
                               ELSE format('uses it at {}: the next owner may have it by now',
                                           w.position) END)
           END AS because
    FROM wrong w
    LEFT JOIN fold made ON made.line = w.since_was
    WHERE w.fault IS NOT NULL
),
ended AS (
    SELECT process, request, min("order") AS ended_at, arg_min(event, "order") AS ended_event
    FROM seen
    -- A retraction ends an attempt: the request comes back under another number.
    WHERE op IN ('request.end', 'retract')
    GROUP BY process, request
),
posthumous AS (
    SELECT f.process, f.pool, f.slot, f.generation, f.request, f.forward, f.position, f.time_ns,
           [e.ended_event, f.event] AS witness,
           format('Let {} end ({}); however, {} was allocated for it afterwards ({}): nobody will '
                  || 'free it, a contradiction.',
                  request_name(f.process, f.request), event_name(e.ended_event),
                  lease_name(f.slot, f.generation), event_name(f.event)) AS because
    FROM fold f
    JOIN ended e USING (process, request)
    WHERE f.op = 'allocate'
      AND f.slot > 0
      AND f.position > e.ended_at
),
-- Rows after which a slot has another holder, and where the next such row stands.
holding AS (
    SELECT process, pool, slot, generation, request, event, op, position, node, live_was,
           lead(position) OVER (PARTITION BY process, pool, slot ORDER BY line) AS until
    FROM fold
    WHERE op IS NULL
       OR op IN ('allocate', 'free', 'evict')
       OR gives
),
given_up AS (
    SELECT h.* EXCLUDE (op, position, live_was),
           e.ended_at AS gave_at, e.ended_event AS gave_event, [h.event] AS since,
           request_name(h.process, h.request) AS the_giver
    FROM holding h
    JOIN ended e USING (process, request)
    WHERE h.op = 'allocate'
      AND h.slot > 0
      AND h.position < e.ended_at
    UNION ALL
    SELECT * EXCLUDE (op, position, live_was), position, event, [], 'node ' || node
    FROM holding
    WHERE op = 'evict'
      AND live_was
),
launches AS (
    SELECT process, forward, event, time_ns, "order" AS launched_at
    FROM seen
    WHERE op = 'forward.launch'
),
flight AS (
    SELECT l.process, l.launched_at, min(d."order") AS done_at
    FROM launches l
    LEFT JOIN seen d
           ON d.process = l.process AND d.forward = l.forward AND d.op = 'forward.done'
    GROUP BY l.process, l.launched_at
),
-- When the last forward that may name the slot was read. Null where it never was.
deadline AS (
    SELECT g.*,
           CASE WHEN last.launched_at IS NULL THEN g.gave_at
                WHEN last.done_at IS NOT NULL THEN greatest(g.gave_at, last.done_at) END AS clear_at
    FROM given_up g
    ASOF LEFT JOIN flight last ON last.process = g.process AND last.launched_at < g.gave_at
),
leaked AS (
    SELECT d.process, d.pool, d.slot, d.generation, d.request, next.forward,
           next.launched_at AS position, next.time_ns,
           list_concat(d.since, [d.gave_event, next.event]) AS witness,
           format('Let {} give up {} ({}), and every forward that named it be read; however, it '
                  || 'was neither freed nor given to the tree when forward {} was launched ({}): '
                  || 'nobody owns it, and nobody will free it, a contradiction.',
                  d.the_giver, lease_name(d.slot, d.generation), event_name(d.gave_event),
                  next.forward, event_name(next.event)) AS because
    FROM deadline d
    ASOF JOIN launches next ON next.process = d.process AND next.launched_at > d.clear_at
    WHERE d.until IS NULL OR d.until > next.launched_at
),
-- A slot that was taken for who waits, and never got to run: nobody ends what did not begin.
begun AS (
    SELECT process, request, min("order") AS begun_at
    FROM seen
    WHERE op = 'request.begin'
    GROUP BY process, request
),
unbegun AS (
    SELECT h.process, h.pool, h.slot, h.generation, h.request, read.forward,
           read.launched_at AS position, read.time_ns, [h.event, read.event] AS witness,
           format('Let {} be allocated for {} ({}); then forward {} was launched ({}) and read; '
                  || 'however, the request never began, so that it will not end and give the slot '
                  || 'back, a contradiction.',
                  lease_name(h.slot, h.generation), request_name(h.process, h.request),
                  event_name(h.event), read.forward, event_name(read.event)) AS because
    FROM holding h
    -- Whether anybody's begin is told is known from the ones before.
    SEMI JOIN begun b ON b.process = h.process AND b.begun_at < h.position
    ANTI JOIN begun mine ON mine.process = h.process AND mine.request = h.request
    ANTI JOIN doubts d ON d.process = h.process
    ASOF JOIN (
        SELECT l.*
        FROM launches l
        JOIN flight f ON f.process = l.process AND f.launched_at = l.launched_at
        WHERE f.done_at IS NOT NULL
    ) read ON read.process = h.process AND read.launched_at > h.position
    WHERE h.op = 'allocate'
      AND h.slot > 0
      AND h.request IS NOT NULL
      AND (h.until IS NULL OR h.until > read.launched_at)
)
FROM misplaced
UNION ALL
FROM unbegun
UNION ALL
FROM posthumous
UNION ALL
FROM leaked
