"""sqlglot's tokens, imported at one place: sqlglot keeps them in a module that it does not declare as public."""

from __future__ import annotations

from sqlglot.tokens import Token, TokenType  # pyright: ignore[reportPrivateImportUsage]

__all__ = ["Token", "TokenType"]
