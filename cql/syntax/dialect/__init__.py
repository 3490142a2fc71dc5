"""The sqlglot dialect: Spark SQL plus windows behind a table and the relation-to-stream operators.

Each file is one difference from sqlglot's Spark dialect, a parser over the one before: ``spans.py``, ``strict.py``,
``intervals.py``, ``windows.py``, ``queries.py``, ``streams.py``, and ``cql.py`` with the dialect that they make.
"""
