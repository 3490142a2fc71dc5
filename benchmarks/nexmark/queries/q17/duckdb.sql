-- a HUGEINT would be written as a DOUBLE
SELECT auction, strftime(date_time, '%Y-%m-%d') AS day,
       COUNT(*) AS bids,
       COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids,
       COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
       COUNT(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
       MIN(price) AS min_price, MAX(price) AS max_price, AVG(price) AS avg_price, CAST(SUM(price) AS BIGINT) AS sum_price
FROM bid
GROUP BY auction, strftime(date_time, '%Y-%m-%d')
