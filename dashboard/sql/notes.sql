-- What a process says of itself: the latest value of each key.
SELECT key, arg_max(value, time_ns) AS value
FROM notes
WHERE process = $process
GROUP BY key
ORDER BY key
