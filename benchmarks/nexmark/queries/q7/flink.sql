SELECT b.auction, b.bidder, b.price, b.date_time, b.extra
FROM bid AS b
JOIN (
  SELECT MAX(price) AS highest, window_start AS starttime, window_end AS endtime
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
  GROUP BY window_start, window_end
) AS m
ON b.price = m.highest
WHERE b.date_time >= m.starttime AND b.date_time < m.endtime
