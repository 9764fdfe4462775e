-- The latest $limit requests of a process that touched a slot, the latest first.
SELECT request_id, min(request) AS request, min("order") AS first_order, count(*) AS acts
FROM acts
WHERE request_id IS NOT NULL
  AND slot IS NOT NULL
GROUP BY request_id
ORDER BY first_order DESC
LIMIT $limit
