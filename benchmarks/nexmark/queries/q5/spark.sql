WITH counted AS (
  SELECT auction, COUNT(*) AS num, window.start AS starttime
  FROM bid
  GROUP BY auction, window(date_time, '10 seconds', '2 seconds')
)
SELECT auction, num, starttime
FROM (SELECT *, MAX(num) OVER (PARTITION BY starttime) AS most FROM counted)
WHERE num = most
