-- The seq that the next event of each writer must have.
CREATE TABLE writers (
    writer INTEGER PRIMARY KEY,
    next_seq BIGINT NOT NULL
);
