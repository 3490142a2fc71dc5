"""sqlglot's tokens, imported at one place: sqlglot keeps them in a module that it does not declare as public."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

__all__ = ["Token", "TokenType"]
