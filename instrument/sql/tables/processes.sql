-- Who took part. `state` is running, stopped (of its own will) or crashed.
CREATE TABLE processes (
    process INTEGER NOT NULL,
    pid INTEGER NOT NULL,
    state VARCHAR NOT NULL,
    started_ns BIGINT NOT NULL, -- CLOCK_MONOTONIC
    command VARCHAR NOT NULL,
    host VARCHAR NOT NULL,
    python VARCHAR NOT NULL,
    error VARCHAR -- the latest one of the probe in this process
);
