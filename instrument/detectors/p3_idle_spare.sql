-- id: P3
-- name: idle-spare
-- severity: capacity
-- invariant: a spare is held only while a crossing is near: no eight decode or verify forwards in a
--   row are launched and read while its request holds it and none of them may write it.
-- needs: allocate, free, verify.plan, scatter, copy, swap, donate, forward.launch, forward.done
-- evidence: the allocate or the last plan that names the spare, and the eighth launch after it.
-- example: r7+ r7+live3 r7+spare6 D1 /1 D2 /2 D3 /3 D4 /4 D5 /5 D6 /6 D7 /7 D8 /8 D9
-- rule: other strategies than extra_buffer_lazy, as the process's notes name them, plan two track
--   slots for a request's whole life, and are not judged.
-- false positives: none known. A request that waits while prompts are computed is not charged.
-- explains: P3 request
WITH lease AS (
    SELECT process, pool, slot, generation, request, position, event
    FROM fold
    WHERE op = 'allocate' AND role = 'spare' AND slot > 0 AND request IS NOT NULL
      AND process NOT IN (
          SELECT process FROM notes
          WHERE key LIKE '%.mamba_radix_cache_strategy' AND value <> 'extra_buffer_lazy')
),
-- Whatever names the spare: from its allocate to the act by which it is one no more.
named AS (
    SELECT l.process, l.pool, l.slot, l.generation, l.request, l.position AS since,
           l.position AS said_at, l.event, FALSE AS ends
    FROM lease l
    UNION ALL
    SELECT l.process, l.pool, l.slot, l.generation, l.request, l.position, s.position, s.event,
           s.op NOT IN ('verify.plan', 'scatter', 'copy')
    FROM lease l
    JOIN seen s USING (process, pool, slot)
    WHERE s.op IN ('verify.plan', 'scatter', 'copy', 'swap', 'free', 'donate', 'insert')
      AND s.position > l.position
      AND (s.generation = l.generation OR s.op = 'free' AND s.generation = l.generation + 1)
),
stretch AS (
    SELECT *, lead(said_at) OVER (PARTITION BY process, pool, slot, generation
                                   ORDER BY said_at, event) AS named_next
    FROM named
),
launched AS (
    SELECT l.process, l.forward, l."order" AS launched_at, l.event, l.time_ns,
           row_number() OVER (PARTITION BY l.process ORDER BY l."order") AS number
    FROM (FROM seen WHERE op = 'forward.launch' AND kind IN ('decode', 'verify')) l
    SEMI JOIN (FROM seen WHERE op = 'forward.done') d
           ON d.process = l.process AND d.forward = l.forward
),
counted AS (
    SELECT s.*, COALESCE(n.number, 0) AS number
    FROM stretch s
    ASOF LEFT JOIN launched n ON n.process = s.process AND n.launched_at <= s.said_at
    WHERE NOT s.ends
)
SELECT c.process, c.pool, c.slot, c.generation, c.request, l.forward, l.launched_at AS position, l.time_ns,
       [c.event, l.event] AS witness,
       format('Let {} be a spare of {}, last named by {}; however, eight forwards were launched '
              || 'since, to forward {} ({}), and none may write it: a slot that a cached prefix '
              || 'could use lies idle, a contradiction.',
              lease_name(c.slot, c.generation), request_name(c.process, c.request),
              event_name(c.event), l.forward, event_name(l.event)) AS because
FROM counted c
JOIN launched l ON l.process = c.process AND l.number = c.number + 8
ANTI JOIN doubts d ON d.process = l.process AND d.since <= l.launched_at
WHERE c.named_next IS NULL OR c.named_next > l.launched_at
