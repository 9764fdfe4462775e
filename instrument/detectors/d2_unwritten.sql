-- id: D2
-- name: unwritten
-- severity: corruption
-- invariant: every read of a state is ordered after a write of its lease: a donate, insert, match
--   or offload of a slot, and the source of a restore or copy.
-- needs: allocate, free, clear, advance, scatter, copy, restore, donate, insert, match,
--   forward.launch
-- evidence: the allocate that began the lease, and the read.
-- example: r7+ r7+live3 r7+keep5 P1 1:3@0 1:3@0>255 /1 5!192n2
-- false positives: a kernel that writes states and says nothing of it looks the same; its ops must
--   be reported by a hook that is not live, and then the detector is blind.
-- explains: D2 lease, D1 lease
SELECT f.process, f.pool, f.slot, f.generation, f.request, f.forward, f.position, f.time_ns,
       [born.event, f.event] AS witness,
       format('Let {} be allocated for {} ({}); then no act ordered before {} wrote it; however, '
              || '{}: the bytes are those of whoever had the slot before, a contradiction.',
              lease_name(f.slot, f.generation),
              request_name(born.process, born.request),
              event_name(born.event),
              event_name(f.event),
              CASE WHEN f.op = 'donate'
                   THEN format('{} gave it to {} as a state of {} tokens ({})',
                               request_name(f.process, f.request), node_name(f.node), f.label,
                               event_name(f.event))
                   WHEN f.op IN ('insert', 'match')
                   THEN format('{} shows it as a state of {} tokens ({})',
                               node_name(f.node), f.label, event_name(f.event))
                   ELSE format('{} reads it', act_name(f.op, f.role, f.forward, f.event))
              END) AS because
FROM fold f
JOIN fold born ON born.line = f.left_by
WHERE NOT f.written_was
  AND f.live_was
  AND (f.reads OR f.op IN ('donate', 'insert', 'match', 'offload'))
  AND NOT in_vain(f.outcome)
