WITH counted AS (
  SELECT auction, COUNT(*) AS num, time_bucket(INTERVAL 2 SECONDS, date_time) - hop * INTERVAL 2 SECONDS AS starttime
  FROM bid, range(5) AS hops(hop)
  GROUP BY ALL
)
SELECT auction, num, starttime
FROM counted
QUALIFY num = MAX(num) OVER (PARTITION BY starttime)
