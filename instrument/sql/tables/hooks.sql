-- Which place in the engine reports which op; `live` is false where it can't. The latest row counts.
CREATE TABLE hooks (
    process INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    op VARCHAR NOT NULL,
    live BOOLEAN NOT NULL,
    time_ns BIGINT NOT NULL
);
