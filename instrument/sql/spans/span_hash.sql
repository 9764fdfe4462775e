-- An id from a seed and a key. Never zero: to OpenTelemetry, zero means that there is none.
CREATE OR REPLACE MACRO span_hash(seed, key) AS
    span_hex(greatest(span_mix(xor(seed, key)), 1::UBIGINT));
