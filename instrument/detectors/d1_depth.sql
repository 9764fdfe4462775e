-- id: D1
-- name: depth
-- severity: corruption
-- invariant: a state is right at one depth only. Where it is donated, inserted, matched or
--   restored, its label is the depth that the last write ordered before left; a copy has the
--   depth of what it copies; an act on the live state begins at the depth that the state has; no
--   write moves a lease back (a second clear or restore is D7's); depth and label lie on the grid
--   that the event names.
-- needs: allocate, free, clear, advance, scatter, copy, restore, donate, insert, match,
--   forward.launch
-- blind where: writes AND depth IS NULL
-- evidence: the write that left another depth than the label, the one before it if that one was
--   right, and the act that claims the label.
-- example: r7+ r7+keep5 P1 1:5^192 V2 2:r7?5@255 /1 5!192n2 2:5^256
-- false positives: none known. A write counts from its launch: a label is judged by what the
--   device will hold, not by what the host had heard.
-- explains: D1 lease, D2 request
WITH claim AS (
    SELECT *,
           CASE WHEN op IN ('donate', 'insert', 'match') AND label <> depth_was THEN 'label'
                WHEN op = 'restore' AND reads AND label <> depth_was THEN 'label'
                WHEN reads AND depth <> depth_was THEN 'copied'
                WHEN NOT reads AND grid > 0 AND (depth % grid <> 0 OR label % grid <> 0) THEN 'grid'
                WHEN (op = 'advance' OR op = 'scatter' AND role = 'live')
                     AND depth_before <> depth_was THEN 'begins'
                WHEN writes AND depth < depth_was AND op NOT IN ('clear', 'restore') THEN 'back'
           END AS fault
    FROM fold
    WHERE live_was
      AND NOT in_vain(outcome)
),
argument AS (
    SELECT c.*,
           wrote.event AS wrote_event,
           filed.event AS filed_event,
           lease_name(c.slot, c.generation) AS the_slot,
           act_name(c.op, c.role, c.forward, c.event) AS the_act,
           act_name(wrote.op, wrote.role, wrote.forward, wrote.event)
               || said_late(wrote.position, wrote."order", c.position) AS the_write,
           act_name(filed.op, filed.role, filed.forward, filed.event) AS the_filed_write,
           request_name(c.process, c.request) AS the_request
    FROM claim c
    LEFT JOIN fold wrote ON wrote.line = c.left_by
    LEFT JOIN fold filed
           ON filed.line = wrote.left_by AND c.fault = 'label' AND wrote.depth_was = c.label
    -- Where a commit left another depth than the next act begins at, D4 argues.
    WHERE c.fault IS NOT NULL
      AND (c.fault <> 'begins' OR wrote.op <> 'scatter' OR wrote.role <> 'live')
),
however AS (
    SELECT *,
           CASE fault
               WHEN 'grid' THEN format('{} must stay on a grid of {} tokens', the_act, grid)
               WHEN 'label' THEN CASE op
                   WHEN 'donate' THEN
                       format('{} gave it to {} as a state of {} tokens ({})',
                              the_request, node_name(node), label, event_name(event))
                   WHEN 'insert' THEN
                       format('{} was filed with it as a state of {} tokens ({})',
                              node_name(node), label, event_name(event))
                   WHEN 'match' THEN
                       format('{} offered it as a state of {} tokens ({})',
                              node_name(node), label, event_name(event))
                   ELSE
                       format('{} restored it from {} as a state of {} tokens, by {}',
                              the_request, node_name(node), label, the_act) END
               WHEN 'copied' THEN format('{} takes it for a state of {} tokens', the_act, depth)
               WHEN 'begins' THEN format('{} begins at {} tokens', the_act, depth_before)
               WHEN 'back' THEN format('{} moves it back to {} tokens', the_act, depth)
           END AS claimed
    FROM argument
)
SELECT process, pool, slot, generation, request, forward, position, time_ns,
       list_filter([filed_event, CASE WHEN fault <> 'grid' THEN wrote_event END, event],
                   lambda e: e IS NOT NULL) AS witness,
       CASE WHEN fault = 'grid'
            THEN format('Let {}; however, it names depth {} and label {} for {}: no prefix of that '
                        || 'length can be looked up, a contradiction.',
                        claimed, COALESCE(depth::VARCHAR, 'none'),
                        COALESCE(label::VARCHAR, 'none'), the_slot)
            WHEN filed_event IS NOT NULL
            THEN format('Let {} leave {} at {} tokens; then {} moved it to {} tokens; however, {}: '
                        || 'who resumes at {} resumes with a state of {} tokens, a contradiction.',
                        the_filed_write, the_slot, label, the_write, depth_was, claimed,
                        label, depth_was)
            ELSE format('Let {} leave {} at {} tokens; however, {}: a state is right at one depth '
                        || 'only, a contradiction.',
                        the_write, the_slot, depth_was, claimed)
       END AS because
FROM however
