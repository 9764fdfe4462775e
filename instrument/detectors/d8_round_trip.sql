-- id: D8
-- name: round-trip
-- severity: corruption
-- invariant: what leaves for the host tier comes back whole: an offload takes every component that
--   the pool has, a load_back brings back every component that was taken, at the same depth and
--   with the same digest; a retracted request goes on from a state of its own prefix only.
-- needs: offload, load_back, retract, allocate, free, forward.launch
-- evidence: the offload, or the retract, and the load_back; where a part was never taken, the act
--   that shows that the pool has it, and the offload.
-- example: offload(slot=5,pool=0,node=2,depth=64,label=64)
--   load_back(slot=6,pool=0,node=2,depth=128,label=64)
-- false positives: none known. A state that no offload of this trace took is not judged: another
--   process may have stored it.
-- rule: the offload of a load_back is the last one of the node before it, of the request where no
--   node is named. Parts of one trip follow each other without an act of the other kind between.
-- explains: D8 lease, D1 lease, D2 lease, D3 lease, D1 request
WITH trip_act AS (
    SELECT process, pool, slot, generation, request, forward, position, "order", time_ns, event, op,
           node, depth, label, component, digest,
           COALESCE('n' || node, 'r' || request) AS thing
    FROM seen
    WHERE op IN ('offload', 'load_back')
      AND (outcome IS NULL OR outcome NOT IN ('failed', 'suppressed'))
),
turned AS (
    SELECT *, lag(op) OVER mine IS DISTINCT FROM op OR component IS NULL AS turns
    FROM trip_act
    WINDOW mine AS (PARTITION BY process, thing ORDER BY position, "order", event)
),
numbered AS (
    SELECT *, count(*) FILTER (turns) OVER mine AS leg
    FROM turned
    WINDOW mine AS (PARTITION BY process, thing ORDER BY position, "order", event
                    ROWS UNBOUNDED PRECEDING)
),
-- One row for each way out or back, its parts together.
trip AS (
    SELECT process, thing, leg, op, pool, any_value(slot) AS slot,
           any_value(generation) AS generation, any_value(request) AS request,
           any_value(forward) AS forward, any_value(node) AS node,
           max(position) AS position, max("order") AS "order", max(time_ns) AS time_ns,
           max(event) AS event, max(depth) AS depth, max(label) AS label,
           list_sort(list(DISTINCT component::VARCHAR) FILTER (component IS NOT NULL)) AS parts,
           list_sort(list(DISTINCT (COALESCE(component::VARCHAR, 'all'), digest)::VARCHAR)
                     FILTER (digest IS NOT NULL)) AS digests,
           bool_or(component IS NULL) AS whole
    FROM numbered
    GROUP BY process, thing, leg, op, pool
),
back AS (
    SELECT b.*, o.event AS out_event, o.depth AS out_depth, o.parts AS out_parts,
           o.whole AS out_whole, o.digests AS out_digests
    FROM (FROM trip WHERE op = 'load_back') b
    ASOF JOIN (FROM trip WHERE op = 'offload') o
      ON o.process = b.process AND o.thing = b.thing AND o."order" < b."order"
),
returned AS (
    SELECT *,
           CASE WHEN depth <> out_depth
                THEN format('a state of {} tokens; however, {} brings back one of {} tokens',
                            out_depth, act_name('load_back', NULL, forward, event), depth)
                WHEN label <> depth
                THEN format('a state of {} tokens; however, {} files it under {} tokens',
                            out_depth, act_name('load_back', NULL, forward, event), label)
                WHEN NOT whole AND NOT out_whole AND len(list_filter(out_parts,
                         lambda part: NOT list_contains(parts, part))) > 0
                THEN format('its parts {}; however, {} brings back {} alone: the rest is what the '
                            || 'slot held before', out_parts,
                            act_name('load_back', NULL, forward, event), parts)
                WHEN whole = out_whole AND parts IS NOT DISTINCT FROM out_parts
                     AND digests <> out_digests
                THEN format('its bytes; however, {} brings back others (digest {}, was {})',
                            act_name('load_back', NULL, forward, event), digests, out_digests)
           END AS argument
    FROM back
),
-- What parts the pool has: those that any act names.
part AS (
    SELECT process, pool, component::VARCHAR AS part, min(event) AS event
    FROM seen
    WHERE component IS NOT NULL AND slot > 0
    GROUP BY ALL
),
incomplete AS (
    SELECT t.*, p.part, p.event AS part_event
    FROM trip t
    JOIN part p ON p.process = t.process AND p.pool = t.pool
    WHERE t.op = 'offload' AND NOT t.whole AND NOT list_contains(t.parts, p.part)
),
retracted AS (
    SELECT process, request, row, depth, event, "order"
    FROM seen
    WHERE op = 'retract'
),
resumed AS (
    SELECT b.*, r.event AS retract_event, r.depth AS retract_depth
    FROM (FROM trip WHERE op = 'load_back' AND node IS NULL) b
    ASOF JOIN retracted r
      ON r.process = b.process AND r.request = b.request AND r."order" < b."order"
    WHERE r.depth <> b.depth
),
found AS (
    SELECT process, pool, slot, generation, request, forward, position, time_ns,
           [out_event, event] AS witness,
           format('{} of {} take {}', act_name('offload', NULL, NULL, out_event),
                  COALESCE('node ' || node, request_name(process, request)), argument) AS argument
    FROM returned
    WHERE argument IS NOT NULL
    UNION ALL
    SELECT process, pool, slot, generation, request, forward, position, time_ns,
           [part_event, event],
           format('the states of pool {} have a part {} ({}); however, {} leaves it behind: who is '
                  || 'brought back misses it', pool, part, event_name(part_event),
                  act_name('offload', NULL, forward, event))
    FROM incomplete
    UNION ALL
    SELECT process, pool, slot, generation, request, forward, position, time_ns,
           [retract_event, event],
           format('{} be retracted at {} tokens ({}); however, {} brings back a state of {} tokens',
                  request_name(process, request), retract_depth, event_name(retract_event),
                  act_name('load_back', NULL, forward, event), depth)
    FROM resumed
)
SELECT process, pool, slot, generation, request, forward, position, time_ns, witness,
       'Let ' || argument || ', a contradiction.' AS because
FROM found f
ANTI JOIN doubts d ON d.process = f.process AND d.since <= f.position
