-- Facts that a process told about itself. The latest row of a key counts.
CREATE TABLE notes (
    process INTEGER NOT NULL,
    key VARCHAR NOT NULL,
    value VARCHAR NOT NULL, -- text as it is, anything else as JSON
    time_ns BIGINT NOT NULL
);
