-- of the beginnings of results, in DuckDB: the last one of its key when each element came
SELECT bids.k, bids.happened, result.total
FROM bids ASOF JOIN result ON bids.k = result.k AND bids.happened >= result.ts
