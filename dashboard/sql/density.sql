-- How many acts on slots fall into each of $bins equal parts of the whole axis: the strip to zoom with.
SELECT least(floor((x - $low) / ($high - $low) * $bins), $bins - 1)::INTEGER AS bin,
       count(*) AS acts
FROM acts
WHERE slot IS NOT NULL
  AND x BETWEEN $low AND $high
GROUP BY bin
ORDER BY bin
