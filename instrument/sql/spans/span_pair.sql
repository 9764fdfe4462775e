-- Two non-negative numbers in one UBIGINT; `low` has less than `shift` bits.
CREATE OR REPLACE MACRO span_pair(high, low, shift) AS
    (high::UBIGINT << shift) | low::UBIGINT;
