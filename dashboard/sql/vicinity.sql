-- The part of the axis in which $before forwards before a place, and $after behind it, were launched.
-- The place is the launch of $forward where that is given and known, else $x.
WITH launched AS (
    SELECT CASE WHEN $axis = 'time' THEN (time_ns - $zero) / 1e9 ELSE "order"::DOUBLE END AS x,
           forward, row_number() OVER (ORDER BY "order") AS turn
    FROM events
    WHERE process = $process
      AND op = 'forward.launch'
),
here AS (
    SELECT coalesce(max(turn) FILTER (forward = $forward), max(turn) FILTER (x <= $x), 1) AS turn
    FROM launched
)
SELECT min(x) AS low, max(x) AS high, bool_or(forward = $forward) AS named
FROM launched
WHERE turn BETWEEN (SELECT turn FROM here) - $before AND (SELECT turn FROM here) + $after
