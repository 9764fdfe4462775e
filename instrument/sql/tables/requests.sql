-- Requests by the number that events carry. Clients may reuse ids, so the pair names an attempt.
CREATE TABLE requests (
    process INTEGER NOT NULL,
    request INTEGER NOT NULL,
    request_id VARCHAR NOT NULL, -- the engine's own
    attempt INTEGER NOT NULL,
    client_id VARCHAR, -- the client's
    trace_parent VARCHAR, -- W3C traceparent that came with it
    "order" BIGINT NOT NULL,
    time_ns BIGINT NOT NULL
);
