-- id: D11
-- name: tree
-- severity: corruption
-- invariant: a node keeps its depth, its key and its state for life, also when its edge is split;
--   what a match offers has the key of what was filed; each unlock undoes a lock of that request and node, no
--   locked node loses its state, an ended request holds no lock; ranks of one engine change their
--   trees in the same order.
-- needs: insert, match, evict, lock, unlock, request.end, forward.launch, forward.done
-- evidence: what was said of the node before, and what contradicts it; for a lock that is never
--   undone, the lock, the request's end and a launch after it.
-- example: r7+ lock(node=2,request=7,label=64) unlock(node=2,request=7) unlock(node=2,request=7)
-- false positives: none known. Keys are compared where both sides tell `token_hash`.
-- rule: a lock counts as left behind if, at the end of the trace, a forward that was launched after
--   its request's end has been read. Ranks are processes whose note `tree.group` is equal.
-- explains: D11 request, D11 slot, D10 slot, D3 slot, D2 slot, D1 slot
WITH act AS (
    SELECT process, pool, slot, generation, request, position, "order", time_ns, event, op, node,
           label, token_hash, outcome
    FROM seen
    WHERE op IN ('insert', 'match', 'split', 'evict', 'lock', 'unlock')
      AND node IS NOT NULL
),
-- An engine may number its nodes anew once it has dropped them.
told AS (
    SELECT *, count(*) FILTER (op = 'evict') OVER sofar AS drops
    FROM act
    WINDOW sofar AS (PARTITION BY process, node ORDER BY "order", event
                     ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
first_told AS (
    SELECT process, node, drops, arg_min(label, "order") AS label,
           arg_min(event, "order") AS event
    FROM told
    WHERE label IS NOT NULL
    GROUP BY ALL
),
first_hash AS (
    SELECT process, node, drops, arg_min(token_hash, "order") AS token_hash,
           arg_min(event, "order") AS event
    FROM told
    WHERE token_hash IS NOT NULL
    GROUP BY ALL
),
renamed AS (
    SELECT t.*, [COALESCE(l.event, h.event), t.event] AS witness,
           CASE WHEN l.event IS NOT NULL
                THEN format('{} end at {} tokens ({}); however, the {} ({}) takes it for {} tokens: '
                            || 'a node has one depth for life',
                            node_name(t.node), l.label, event_name(l.event), t.op,
                            event_name(t.event), t.label)
                ELSE format('{} be filed under one prefix ({}); however, the {} ({}) finds it under '
                            || 'another: whoever resumes there continues a text that is not his',
                            node_name(t.node), event_name(h.event), t.op, event_name(t.event))
           END AS argument
    FROM told t
    LEFT JOIN first_told l
           ON l.process = t.process AND l.node = t.node AND l.drops = t.drops
          AND l.label <> t.label
    LEFT JOIN first_hash h
           ON h.process = t.process AND h.node = t.node AND h.drops = t.drops
          AND h.token_hash <> t.token_hash
    WHERE l.event IS NOT NULL OR h.event IS NOT NULL
),
-- A state stays with the node that it was filed under.
home AS (
    SELECT process, pool, slot, generation, arg_min(node, "order") AS node,
           arg_min(event, "order") AS event
    FROM act
    WHERE op = 'insert' AND slot > 0 AND (outcome IS NULL OR outcome <> 'exists')
    GROUP BY ALL
),
moved AS (
    SELECT a.*, [h.event, a.event] AS witness,
           format('{} be filed under {} ({}); however, the {} ({}) finds it at {}: a state is right '
                  || 'at one depth only, so it stays where it is when an edge is split',
                  lease_name(a.slot, a.generation), node_name(h.node), event_name(h.event), a.op,
                  event_name(a.event), node_name(a.node)) AS argument
    FROM act a
    JOIN home h USING (process, pool, slot, generation)
    WHERE a.op IN ('match', 'evict') AND a.node <> h.node
),
lock_act AS (
    SELECT *,
           sum(CASE op WHEN 'lock' THEN 1 WHEN 'unlock' THEN -1 ELSE 0 END) OVER mine AS mine_is,
           max(event) FILTER (op = 'lock') OVER mine AS locked_event,
           max(event) FILTER (op = 'unlock') OVER earlier AS unlocked_event
    FROM act
    WHERE op IN ('lock', 'unlock')
    WINDOW mine AS (PARTITION BY process, node, request ORDER BY "order", event
                    ROWS UNBOUNDED PRECEDING),
           earlier AS (PARTITION BY process, node, request ORDER BY "order", event
                       ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
unpaired AS (
    SELECT * EXCLUDE (mine_is, locked_event, unlocked_event),
           list_filter([COALESCE(unlocked_event, locked_event), event], lambda e: e IS NOT NULL)
               AS witness,
           format('{} hold no lock of {}{}; however, it gives one back ({}): a lock of somebody '
                  || 'else is gone, and what he needs may be evicted',
                  request_name(process, request), node_name(node),
                  COALESCE(' since ' || event_name(unlocked_event), ''), event_name(event))
               AS argument
    FROM lock_act
    WHERE op = 'unlock' AND mine_is < 0 AND request IS NOT NULL
),
pinned AS (
    SELECT *, sum(CASE op WHEN 'lock' THEN 1 WHEN 'unlock' THEN -1 ELSE 0 END) OVER sofar AS pins,
           max(event) FILTER (op = 'lock') OVER sofar AS locked_event,
           arg_max(request, "order") FILTER (op = 'lock') OVER sofar AS locked_by
    FROM act
    WHERE op IN ('lock', 'unlock', 'evict')
    WINDOW sofar AS (PARTITION BY process, node ORDER BY "order", event ROWS UNBOUNDED PRECEDING)
),
evicted AS (
    SELECT * EXCLUDE (pins, locked_event, locked_by), [locked_event, event] AS witness,
           format('{} be locked {} times, last by {} ({}); however, its state is evicted ({}): who '
                  || 'locked it resumes from a slot that somebody else has',
                  node_name(node), pins, request_name(process, locked_by),
                  event_name(locked_event), event_name(event)) AS argument
    FROM pinned
    WHERE op = 'evict' AND slot > 0 AND pins > 0
),
ended AS (
    SELECT process, request, min("order") AS ended_at, arg_min(event, "order") AS ended_event
    FROM seen
    WHERE op IN ('request.end', 'retract')
    GROUP BY ALL
),
beat AS (
    SELECT process, forward,
           min("order") FILTER (op = 'forward.launch') AS launched_at,
           min(event) FILTER (op = 'forward.launch') AS event,
           min("order") FILTER (op = 'forward.done') AS done_at
    FROM seen
    WHERE op IN ('forward.launch', 'forward.done')
    GROUP BY ALL
),
left_behind AS (
    SELECT l.* EXCLUDE (mine_is, locked_event, unlocked_event),
           [l.event, e.ended_event, b.event] AS witness,
           format('{} lock {} ({}) and end ({}); however, the lock was not undone when forward {} '
                  || 'had been launched ({}) and read: nobody will, and the tree shrinks by it',
                  request_name(l.process, l.request), node_name(l.node), event_name(l.event),
                  event_name(e.ended_event), b.forward, event_name(b.event)) AS argument
    FROM (
        FROM lock_act
        QUALIFY row_number() OVER (PARTITION BY process, node, request
                                   ORDER BY "order" DESC, event DESC) = 1
    ) l
    JOIN ended e ON e.process = l.process AND e.request = l.request AND e.ended_at > l."order"
    ASOF JOIN (FROM beat WHERE done_at IS NOT NULL) b
           ON b.process = l.process AND b.launched_at > e.ended_at
    WHERE l.mine_is > 0
),
rank AS (
    SELECT process, arg_max(value, time_ns) AS tree_group
    FROM notes
    WHERE key = 'tree.group'
    GROUP BY process
),
turn AS (
    SELECT a.*, r.tree_group,
           row_number() OVER (PARTITION BY a.process ORDER BY a."order", a.event) AS nth
    FROM act a
    JOIN rank r USING (process)
    WHERE a.op IN ('insert', 'split', 'evict')
      AND (a.outcome IS NULL OR a.outcome <> 'exists')
),
diverged AS (
    SELECT t.* EXCLUDE (tree_group, nth), [o.event, t.event] AS witness,
           format('process {} change its tree by the {} at {} tokens ({}); however, process {}, a '
                  || 'rank of the same engine, makes the {} at {} tokens ({}) its {}th change: '
                  || 'their trees differ from here on',
                  o.process, o.op, COALESCE(o.label::VARCHAR, 'unknown'), event_name(o.event),
                  t.process, t.op, COALESCE(t.label::VARCHAR, 'unknown'), event_name(t.event), t.nth)
               AS argument
    FROM turn t
    JOIN turn o ON o.tree_group = t.tree_group AND o.nth = t.nth
    ANTI JOIN doubts d ON d.process = o.process
    WHERE o.process = (SELECT min(process) FROM rank r WHERE r.tree_group = t.tree_group)
      AND o.process <> t.process
      AND (o.op <> t.op OR o.label <> t.label OR o.token_hash <> t.token_hash)
    QUALIFY row_number() OVER (PARTITION BY t.process ORDER BY t.nth) = 1
),
found AS (
    SELECT * EXCLUDE (drops) FROM renamed
    UNION ALL BY NAME
    FROM moved
    UNION ALL BY NAME
    FROM unpaired
    UNION ALL BY NAME
    FROM evicted
    UNION ALL BY NAME
    FROM left_behind
    UNION ALL BY NAME
    FROM diverged
)
SELECT process, pool, slot, generation, request, NULL::INTEGER AS forward, position, time_ns,
       witness, 'Let ' || argument || ', a contradiction.' AS because
FROM found f
ANTI JOIN doubts d ON d.process = f.process AND d.since <= f.position
