SELECT b.auction, b.bidder, b.price, b.date_time, b.extra
FROM bid AS b
JOIN (
  SELECT MAX(price) AS highest, window.start AS starttime, window.end AS endtime
  FROM bid
  GROUP BY window(date_time, '10 seconds')
) AS m
ON b.price = m.highest AND b.date_time >= m.starttime AND b.date_time < m.endtime
