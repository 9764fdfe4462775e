-- What each act met: the table that detectors read. One row per (event, slot that it touches).
--
-- `_was` is what all acts ordered before this one left. Beside the event's own columns:
--   line          BIGINT   number of the row; rows of a slot follow each other in order
--   reads         BOOLEAN  the slot is the one that a restore or copy reads
--   writes        BOOLEAN  the act changes the slot's state
--   gives         BOOLEAN  the act hands the slot to the tree
--   known_was     BOOLEAN  no records were lost since the slot's last allocate or free
--   live_was      BOOLEAN  allocated and not freed
--   tree_was      BOOLEAN  held by a tree node
--   owner_was     INTEGER  request that holds it; null = the tree, nobody or unknown
--   since_was     BIGINT   row that made it so; 0 = since the trace began
--   written_was   BOOLEAN  the lease was written; null = unknown
--   depth_was     INTEGER  depth that its last write left; null = not written, or unknown
--   left_by       BIGINT   row of that write; of the allocate where the lease was not written
CREATE OR REPLACE TEMP VIEW fold AS
SELECT * EXCLUDE (holder_was, wrote_was),
       value_of(holder_was) <> holder_unknown() AS known_was,
       value_of(holder_was) < holder_unknown()
           OR value_of(holder_was) IN (holder_tree(), holder_nobody()) AS live_was,
       value_of(holder_was) = holder_tree() AS tree_was,
       CASE WHEN value_of(holder_was) < holder_unknown() THEN value_of(holder_was) END AS owner_was,
       row_of(holder_was) AS since_was,
       CASE WHEN value_of(wrote_was) <> wrote_unknown()
            THEN value_of(wrote_was) <> wrote_nothing() END AS written_was,
       CASE WHEN value_of(wrote_was) < wrote_unknown() THEN value_of(wrote_was) END AS depth_was,
       row_of(wrote_was) AS left_by
FROM touches
