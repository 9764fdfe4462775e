-- One round of splitmix64's finaliser: xor with itself shifted, times a constant, modulo 2^64.
-- The product of two 64-bit numbers fits into a UHUGEINT, so it is exact and never overflows.
CREATE OR REPLACE MACRO span_fold(z, shift, factor) AS
    ((xor(z, z >> shift)::UHUGEINT * factor) & 18446744073709551615::UHUGEINT)::UBIGINT;
