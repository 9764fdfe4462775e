-- In a sealed generation: how often each slot was allocated or freed before the events that it
-- holds, so that generations of slots are counted on without the files before it. Else empty.
CREATE TABLE lives (
    process INTEGER NOT NULL,
    pool INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    changes BIGINT NOT NULL
);
