WITH gaps AS (
  SELECT bidder, date_time,
         date_time - LAG(date_time) OVER (PARTITION BY bidder ORDER BY date_time) >= INTERVAL 10 SECONDS AS parts
  FROM bid
), sessions AS (
  SELECT bidder, date_time, COUNT(*) FILTER (WHERE parts) OVER (PARTITION BY bidder ORDER BY date_time) AS session
  FROM gaps
)
SELECT bidder, COUNT(*) AS bids, MIN(date_time) AS starttime, MAX(date_time) + INTERVAL 10 SECONDS AS endtime
FROM sessions
GROUP BY bidder, session
