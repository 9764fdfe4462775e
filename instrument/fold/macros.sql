-- Values of `holder_was` and `wrote_was` (touches.sql) that are no request and no depth. 31 bits.
CREATE OR REPLACE TEMP MACRO holder_free() AS 2147483647::BIGINT;
CREATE OR REPLACE TEMP MACRO holder_tree() AS 2147483646::BIGINT;
CREATE OR REPLACE TEMP MACRO holder_nobody() AS 2147483645::BIGINT;
CREATE OR REPLACE TEMP MACRO holder_unknown() AS 2147483644::BIGINT;
CREATE OR REPLACE TEMP MACRO wrote_nothing() AS 2147483647::BIGINT;
CREATE OR REPLACE TEMP MACRO wrote_unknown() AS 2147483646::BIGINT;
CREATE OR REPLACE TEMP MACRO value_of(fact) AS fact & 2147483647;
CREATE OR REPLACE TEMP MACRO row_of(fact) AS fact >> 31;

-- Outcomes of a donate, insert, match or allocate by which nothing came about.
CREATE OR REPLACE TEMP MACRO in_vain(outcome) AS
    outcome IS NOT NULL AND outcome IN ('suppressed', 'failed', 'exists', 'miss');

-- Ops and facts that change nothing which another act meets: where one is lost, those detectors
-- alone are blind that need it.
CREATE OR REPLACE TEMP MACRO harmless(op) AS
    op IN ('lock', 'unlock', 'split', 'verify.plan', 'request.begin', 'request', 'note');

-- How findings name an event: writer.seq.
CREATE OR REPLACE TEMP MACRO event_name(event) AS
    format('event {}.{}', event >> 40, event & ((1::BIGINT << 40) - 1));

-- ... a request: the engine's id for it, else its number.
CREATE OR REPLACE TEMP MACRO request_name(in_process, number) AS
    COALESCE(
        'request ' || (SELECT any_value(request_id) FROM requests
                       WHERE process = in_process AND request = number AND request_id <> ''),
        'request ' || number,
        'nobody');

-- ... an act: its word in the glossary, the forward that it is part of, the event.
CREATE OR REPLACE TEMP MACRO act_name(op, role, forward, event) AS
    format('the {}{} ({})',
           CASE WHEN op = 'scatter' AND role = 'live' THEN 'commit'
                WHEN op = 'scatter' THEN 'track'
                ELSE op::VARCHAR END,
           COALESCE(' of forward ' || forward, ''),
           event_name(event));

-- ... a slot in one of its leases.
CREATE OR REPLACE TEMP MACRO lease_name(slot, generation) AS
    format('slot {}{}', slot, COALESCE(' (generation ' || generation || ')', ''));

-- ... that the host heard of a device act only after one that it precedes.
CREATE OR REPLACE TEMP MACRO said_late(position, "order", other) AS
    CASE WHEN position < other AND "order" > other
         THEN format(', which was launched at {}, before {}, though said later,', position, other)
         ELSE '' END;

-- ... of a tree node, which not every engine names.
CREATE OR REPLACE TEMP MACRO node_name(number) AS COALESCE('node ' || number, 'the tree');

-- ... a pipeline stage: the rank that its process told, else the pool, of which each stage has one.
CREATE OR REPLACE TEMP MACRO stage_name(in_process, pool) AS
    'stage ' || COALESCE(
        (SELECT any_value(value) FROM notes
         WHERE process = in_process AND key = 'sglang.pp_rank'),
        pool::VARCHAR);
