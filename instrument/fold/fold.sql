-- What each act met and left: the table that detectors read. One row per (event, touched slot).
--
-- `_was` is what all acts ordered before this one left, `_is` what this one leaves. Beside the
-- event's own columns:
--   line          BIGINT   number of the row; rows of a slot follow each other in order
--   reads         BOOLEAN  the slot is the one that a restore or copy reads
--   writes        BOOLEAN  the act changes the slot's state
--   lease         BIGINT   row of the allocate that began this lease, unique over the trace
--   known_was     BOOLEAN  no records were lost since the slot's last allocate or free
--   live_was      BOOLEAN  allocated and not freed
--   tree_was      BOOLEAN  held by a tree node
--   owner_was     INTEGER  request that holds it; null = the tree, nobody or unknown
--   since_was     BIGINT   row that made it so; 0 = since the trace began
--   written_was   BOOLEAN  the lease was written; null = unknown
--   writer_was    BIGINT   row of its last write
--   depth_was     INTEGER  depth that this write left; null = not written, or unknown
CREATE OR REPLACE TEMP VIEW fold AS
SELECT * EXCLUDE (holder_is, holder_was, wrote_is, wrote_was),
       value_of(holder_was) <> holder_unknown() AS known_was,
       value_of(holder_was) < holder_unknown() OR value_of(holder_was) IN (holder_tree(), holder_nobody())
           AS live_was,
       value_of(holder_was) = holder_tree() AS tree_was,
       CASE WHEN value_of(holder_was) < holder_unknown() THEN value_of(holder_was) END AS owner_was,
       row_of(holder_was) AS since_was,
       CASE value_of(wrote_was) WHEN wrote_nothing() THEN FALSE WHEN wrote_unknown() THEN NULL ELSE TRUE END
           AS written_was,
       CASE WHEN value_of(wrote_was) <> wrote_nothing() THEN row_of(wrote_was) END AS writer_was,
       CASE WHEN value_of(wrote_was) < wrote_unknown() THEN value_of(wrote_was) END AS depth_was,
       value_of(holder_is) < holder_unknown() OR value_of(holder_is) IN (holder_tree(), holder_nobody())
           AS live_is,
       value_of(holder_is) = holder_tree() AS tree_is,
       CASE WHEN value_of(holder_is) < holder_unknown() THEN value_of(holder_is) END AS owner_is,
       CASE WHEN value_of(wrote_is) < wrote_unknown() THEN value_of(wrote_is) END AS depth_is
FROM touches
