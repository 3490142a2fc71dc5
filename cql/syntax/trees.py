"""What a syntax tree says by itself, before any name in it means something."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp


def is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


def own_nodes(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes of an expression without those of its subqueries."""
    return (n for n in tree.walk(prune=lambda n: isinstance(n, exp.Query)) if not isinstance(n, exp.Query))


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """The conditions that AND connects, from left to right."""
    found: list[exp.Expr] = []
    pending = [node]
    while pending:
        tree = pending.pop()
        while isinstance(tree, exp.Paren) and isinstance(tree.this, exp.And | exp.Paren):
            tree = tree.this
        if isinstance(tree, exp.And):
            pending += [tree.expression, tree.this]
        else:
            found.append(tree)
    return found


def has_subquery(tree: exp.Expr) -> bool:
    return any(isinstance(n, exp.Query) for n in tree.walk())


def table_names(query: exp.Expr) -> Iterator[str]:
    """The names in the FROM clauses of a query and its subqueries, those of its own WITH clauses left out."""
    for name, _ in tables_of(query):
        yield name


def tables_of(query: exp.Expr) -> Iterator[tuple[str, exp.Table]]:
    """As ``table_names``, each with the place where it stands."""
    yield from _names(query, frozenset())


def _names(query: exp.Expr, hidden: frozenset[str]) -> Iterator[tuple[str, exp.Table]]:
    # a stack of its own, since a chain of 5,000 ANDs is as deep as it is long
    open_ = [(query, hidden)]
    while open_:
        node, hidden = open_.pop()
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            name = ".".join(part.name for part in node.parts)
            if name.lower() not in hidden:
                yield name, node
        inside: list[tuple[exp.Expr, frozenset[str]]] = []
        with_ = node.args.get("with_")
        if isinstance(with_, exp.With):
            for cte in with_.expressions:
                inside.append((cte.this, hidden))
                hidden = hidden | {cte.alias.lower()}
        for key, value in node.args.items():
            if key != "with_":
                children = value if isinstance(value, list) else [value]
                inside += [(child, hidden) for child in children if isinstance(child, exp.Expr)]
        open_ += reversed(inside)
