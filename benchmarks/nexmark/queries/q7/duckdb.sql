SELECT auction, bidder, price, date_time, extra
FROM bid
QUALIFY price = MAX(price) OVER (PARTITION BY time_bucket(INTERVAL 10 SECONDS, date_time))
