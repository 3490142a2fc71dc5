SELECT bidder, COUNT(*) AS bids, session_window.start AS starttime, session_window.end AS endtime
FROM bid
GROUP BY bidder, session_window(date_time, '10 seconds')
