-- The same instant on both clocks. One at each process's start, one for each of its segments.
CREATE TABLE anchors (
    process INTEGER NOT NULL,
    monotonic_ns BIGINT NOT NULL,
    realtime_ns BIGINT NOT NULL
);
