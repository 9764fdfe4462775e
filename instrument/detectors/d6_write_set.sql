-- id: D6
-- name: write-set
-- severity: corruption
-- invariant: a forward writes the live slots of its requests, the track slots of its plan, and the
--   pad slot; its padded rows write nothing else, dummy and capture forwards write nothing at all.
-- needs: allocate, free, advance, scatter, copy, verify.plan, forward.launch
-- evidence: the plan or the allocate that says what the slot is, if there is one, and the write.
-- example: r7+ r7+live3 P1 1:3@0 1:3@0>64 /1 D2 advance(forward=2,slot=3,pool=0,depth=65)
-- false positives: an engine that moves states without saying for whom looks the same. Each device
--   act on a slot must name the request that it is for.
-- explains: D6 slot, D10 slot, D3 slot, D1 slot, D2 slot, D4 slot
WITH track AS (
    SELECT f.line, p.event AS named_event, p.slot AS named_slot
    FROM (FROM fold WHERE op = 'scatter' AND role IN ('keep', 'spare')) f
    JOIN seen p
      ON p.op = 'verify.plan' AND p.process = f.process AND p.forward = f.forward
     AND p.request = f.request AND COALESCE(p.pool, 0) = f.pool
    WHERE p.slot IS DISTINCT FROM f.slot
),
seat AS (
    SELECT line, role, event
    FROM fold
    WHERE op = 'allocate' AND role IN ('keep', 'spare')
),
stray AS (
    SELECT f.*, NULL::BIGINT AS named_event, NULL::INTEGER AS named_slot,
           CASE WHEN l.kind IN ('dummy', 'capture') THEN l.kind::VARCHAR ELSE 'nobody' END AS fault
    FROM fold f
    JOIN seen l
      ON l.op = 'forward.launch' AND l.process = f.process AND l.forward = f.forward
    WHERE f.writes
      AND f.slot > 0
      AND (f.live_was AND f.request IS NULL OR l.kind IN ('dummy', 'capture'))
    UNION ALL BY NAME
    SELECT f.*, t.named_event, t.named_slot, 'unplanned' AS fault
    FROM fold f
    JOIN track t USING (line)
    UNION ALL BY NAME
    SELECT f.*, s.event AS named_event, 'seat' AS fault
    FROM fold f
    JOIN seat s ON s.line = f.since_was
    WHERE f.live_was
      AND f.owner_was = f.request
      AND (f.op = 'advance' OR f.op = 'scatter' AND f.role = 'live')
)
SELECT process, pool, slot, generation, request, forward, position, time_ns,
       list_filter([named_event, event], lambda e: e IS NOT NULL) AS witness,
       format('Let {}; however, {} {} {}, a contradiction.',
              CASE fault
                  WHEN 'nobody' THEN
                      format('forward {} write the slots of its requests', forward)
                  WHEN 'unplanned' THEN
                      format('the plan of forward {} give {} {} to write ({})', forward,
                             request_name(process, request),
                             COALESCE('slot ' || named_slot, 'no slot'), event_name(named_event))
                  WHEN 'seat' THEN
                      format('{} be a track slot of {} ({})', lease_name(slot, generation),
                             request_name(process, request), event_name(named_event))
                  ELSE format('forward {} be a {}, which serves nobody', forward, fault) END,
              act_name(op, role, forward, event),
              CASE fault
                  WHEN 'nobody' THEN 'is for no request and writes'
                  WHEN 'seat' THEN 'moves it as if it were the live state:'
                  ELSE 'writes' END,
              CASE fault
                  WHEN 'seat' THEN 'the live state stays behind'
                  ELSE lease_name(slot, generation) || ': whose state it was, it is overwritten' END
       ) AS because
FROM stray
