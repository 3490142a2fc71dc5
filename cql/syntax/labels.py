"""Names of output columns: an alias, a column's own name, else the text that Spark would show for the expression."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sweeparea.cql.syntax.dialect.spans import span_of
from sweeparea.cql.text.source_text import SourceText

_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div", exp.EQ: "=", exp.GT:
    ">", exp.GTE: ">=",
    exp.LT: "<", exp.LTE: "<=", exp.And: "AND", exp.Or: "OR", exp.NullSafeEQ: "<=>", exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
}  # fmt: skip


def label_of(node: exp.Expr, source: SourceText) -> str:
    """The name of an unaliased select item."""
    if isinstance(node, exp.Alias):
        return node.alias
    if isinstance(node, exp.Paren):
        return label_of(node.this, source)
    if isinstance(node, exp.Column | exp.Dot):
        return node.name
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Column):
        return node.this.name
    return _text(node, source)


def _text(node: exp.Expr, source: SourceText) -> str:
    def of(child: exp.Expr) -> str:
        return _text(child, source)

    if isinstance(node, exp.Paren):
        return of(node.this)
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.Literal):
        return node.name
    if isinstance(node, exp.Null):
        return "NULL"
    if isinstance(node, exp.Boolean):
        return "true" if node.this else "false"
    if type(node) in _BINARY:
        return f"({of(node.this)} {_BINARY[type(node)]} {of(node.expression)})"
    if isinstance(node, exp.NEQ):
        return f"(NOT ({of(node.this)} = {of(node.expression)}))"
    if isinstance(node, exp.Not) and isinstance(node.this, exp.Is):
        return f"({of(node.this.this)} IS NOT {of(node.this.expression)})"
    if isinstance(node, exp.Not):
        return f"(NOT {of(node.this)})"
    if isinstance(node, exp.Is):
        return f"({of(node.this)} IS {of(node.expression)})"
    if isinstance(node, exp.Neg):
        return f"(- {of(node.this)})"
    if isinstance(node, exp.Anonymous):
        return _call(node, of)
    if isinstance(node, exp.DPipe):
        return f"concat({of(node.this)}, {of(node.expression)})"
    if isinstance(node, exp.Between):
        return f"between({of(node.this)}, {of(node.args['low'])}, {of(node.args['high'])})"
    if isinstance(node, exp.In) and node.expressions:
        return f"({of(node.this)} IN ({', '.join(of(e) for e in node.expressions)}))"
    if isinstance(node, exp.Like):
        return f"{of(node.this)} LIKE {of(node.expression)}"
    if isinstance(node, exp.Case) and node.args.get("this") is None:
        branches = "".join(f" WHEN {of(i.this)} THEN {of(i.args['true'])}" for i in node.args["ifs"])
        default = node.args.get("default")
        return f"CASE{branches}{f' ELSE {of(default)}' if default is not None else ''} END"
    span = span_of(node)
    return source.splice(span) if span is not None else node.key


def _call(node: exp.Anonymous, of: Callable[[exp.Expr], str]) -> str:
    name = node.name.lower()
    arguments = node.expressions
    if name == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
        return "count(1)"
    if name == "if":
        return f"(IF({', '.join(of(a) for a in arguments)}))"
    return f"{name}({', '.join(of(a) for a in arguments)})"


def unique_labels(labels: list[str]) -> list[str]:
    """``a, a, a`` as ``a, a_2, a_3``; names that differ in case only count as repeated, since Delta tables fold
    case."""
    taken = {label.lower() for label in labels}
    seen: set[str] = set()
    result: list[str] = []
    for label in labels:
        name, n = label, 1
        while name.lower() in seen or (n > 1 and name.lower() in taken):
            n += 1
            name = f"{label}_{n}"
        seen.add(name.lower())
        result.append(name)
    return result
