WITH counted AS (
  SELECT auction, COUNT(*) AS num, window
  FROM bid
  GROUP BY auction, window(date_time, '10 seconds', '2 seconds')
), highest AS (
  SELECT MAX(num) AS most, window FROM counted GROUP BY window
)
SELECT counted.auction, counted.num, counted.window.start AS starttime
FROM counted JOIN highest ON counted.window = highest.window AND counted.num = highest.most
