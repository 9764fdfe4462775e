-- Span id of a lease. Four numbers do not fit into 64 bits: hashed in two steps.
CREATE OR REPLACE MACRO lease_span_id(process, pool, slot, generation) AS
    span_hash(span_mix(xor(lease_seed(), span_pair(process, pool, 32))),
              span_pair(slot, generation, 32));
