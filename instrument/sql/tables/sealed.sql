-- In live.duckdb: the generations that hold what it held before. A gen-N file that is not in here
-- is the rest of a roll that did not come to its end.
CREATE TABLE sealed (
    number INTEGER PRIMARY KEY
);
