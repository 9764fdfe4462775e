-- How far each segment is stored. Written in the transaction that stores its events, which makes
-- every record be stored exactly once: a key on events would cost three times the insert.
CREATE TABLE offsets (
    process INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    bytes BIGINT NOT NULL,
    events BIGINT NOT NULL, -- committed ones, be they stored or damaged
    done BOOLEAN NOT NULL, -- sealed, or its writer is dead
    PRIMARY KEY (process, segment)
);
