"""The dialect itself: which of the tables of sqlglot's Spark dialect the language has.

Functions are not turned into sqlglot's own classes: the tree is read for names only, never printed, so ``f(x)`` stays
``Anonymous("f", [x])`` and nothing about a Spark function can get lost.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser

from sweeparea.cql.syntax.dialect.streams import TO_STREAM, StreamParser
from sweeparea.cql.text.tokens import TokenType


class CqlParser(StreamParser):
    """Spark's parser with windows and relation-to-stream operators."""

    FUNCTIONS: ClassVar = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar = {"CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
    FUNCTION_PARSERS: ClassVar = {
        name: SparkParser.FUNCTION_PARSERS[name]
        for name in ("CAST", "TRY_CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTRING", "SUBSTR", "TRIM")
    } | {name: lambda self: self._parse_to_stream_call() for name in TO_STREAM}
    # Spark reads JSON by functions; -> belongs to lambdas alone
    COLUMN_OPERATORS: ClassVar = {
        kind: SparkParser.COLUMN_OPERATORS[kind] for kind in (TokenType.DOT, TokenType.DCOLON)
    }
    JSON_OPERATORS: ClassVar = {}
    ARRAY_CONSTRUCTORS: ClassVar = {}  # array(a)[0] is an element of it, not ARRAY[0]
    TYPE_TOKENS: ClassVar = SparkParser.TYPE_TOKENS - {TokenType.NULL}  # array(NULL, a) holds two values and no type
    ADD_JOIN_ON_TRUE = False
    SUPPORTS_TABLE_QUERY = True  # TABLE name
    # each of these would consume text that Spark's grammar does not have
    PLACEHOLDER_PARSERS: ClassVar = {}


class Cql(Spark):
    """Spark SQL with windows and relation-to-stream operators."""

    INTERSECT_BINDS_TIGHTER_THAN_UNION_AND_EXCEPT = True  # as Spark's grammar has it
    SUPPORTS_COLUMN_JOIN_MARKS = True  # read, to be refused with the way out

    class Tokenizer(Spark.Tokenizer):
        # EXPLAIN, SHOW and the like would swallow the rest of a statement as one string
        COMMANDS: ClassVar = set()
        KEYWORDS: ClassVar = {
            word: kind
            for word, kind in Spark.Tokenizer.KEYWORDS.items()
            if not word.startswith(("FOR ", "ADD ", "{", "MSCK ", "KILL"))
            and word not in ("ISNULL", "NOTNULL")  # a function and a name in Spark, no operators
        } | {"(+)": TokenType.JOIN_MARKER}

    Parser = CqlParser
