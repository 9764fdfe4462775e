-- splitmix64's finaliser (Stafford's variant 13): 64 bits to 64 bits, one to one.
-- `slotscope.instrument.otel.ids.mix64` is the same in NumPy.
-- A list of one with a lambda is DuckDB's way to name a value: each round uses its input twice, and
-- without a name the expression would double with every round.
CREATE OR REPLACE MACRO span_mix(z) AS
    list_transform(list_transform(list_transform([z],
        lambda a: span_fold(a, 30, 13787848793156543929::UHUGEINT)),
        lambda b: span_fold(b, 27, 10723151780598845931::UHUGEINT)),
        lambda c: xor(c, c >> 31))[1];
