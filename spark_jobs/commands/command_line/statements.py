"""``sql`` and ``run``: statements over results, and statements that act; a prompt, or one text."""

from __future__ import annotations

import click

from sweeparea.spark_jobs.commands.command_line.command import command
from sweeparea.spark_jobs.commands.command_line.shared import NamedApplication, OneOf, placed


@command("sql", "query the result tables: a prompt, or one statement with -c")
@placed
@click.option("-c", "statement", metavar="SQL", help="run this statement and end")
@click.option("--format", "form", type=OneOf(("table", "csv", "json")), default="table", help="how rows are printed")
def sql(place: NamedApplication, statement: str | None, form: str) -> int:
    from sweeparea.spark_jobs.commands.sql import Reader, prompt

    reader = Reader(place.open())
    if statement is None:
        return min(1, prompt(reader, form))
    print(reader.run(statement, form))
    return 0


@command("run", "run statements that act, SHOW, DESCRIBE, PAUSE, DROP ..: a prompt, or -c")
@placed
@click.option("-c", "statement", metavar="CQL", help="run these statements and end")
def run(place: NamedApplication, statement: str | None) -> int:
    from sweeparea.spark_jobs.commands.commands import StatementSession, prompt

    session = StatementSession(place.open())
    if statement is None:
        return min(1, prompt(session))
    for said in session.run(statement):
        print(said, flush=True)
    return 0
