-- What this file is. One row. A reader refuses a schema_version that it does not know.
CREATE TABLE meta (
    schema_version INTEGER NOT NULL,
    trace_uid UBIGINT NOT NULL -- random; makes span ids of different traces differ
);
