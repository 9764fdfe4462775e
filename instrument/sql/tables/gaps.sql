-- Events that are missing, exactly. A detector that needs them is blind, not clean.
CREATE TABLE gaps (
    process INTEGER NOT NULL,
    writer INTEGER, -- null: an unreadable segment, whose writer is not known
    reason VARCHAR NOT NULL, -- full, refused, damaged, overwritten or late (see docs/storage.md)
    op VARCHAR, -- null for damaged bytes, which tell no op
    count BIGINT NOT NULL, -- 0 where only facts, or an unknown number, were damaged
    first_order BIGINT, -- of the first and the last lost record, null for damaged bytes
    last_order BIGINT,
    first_ns BIGINT,
    last_ns BIGINT,
    open BOOLEAN NOT NULL, -- the writer has not written since
    detail VARCHAR
);
