"""The command ``sweeparea``. Each command is a function over an application; errors are one paragraph and an exit code.

Exit codes: 0 done (also when there was nothing to do), 1 the work failed, 2 wrong use, a mistake in a text, or
something that must run first, 3 the machine lacks something, 130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from sweeparea.infra import machine
from sweeparea.infra.errors import SweepAreaError, UsageError

if TYPE_CHECKING:
    from sweeparea.spark_jobs.application import Application
    from sweeparea.spark_jobs.declarations.analysis import Checking

DESCRIPTION = """\
SweepArea keeps continuous queries exact over Delta tables.

An application is a folder of .cql files that declare streams, relations and continuous queries. Name it by its
folder, or by its name under queries/. A first round by hand:

  sweeparea plan flights               what the files say against what is deployed; `apply` deploys it
  sweeparea admit flights              take over what is new in the sources of all streams and relations
  sweeparea process flights            let every query catch up with its inputs' heartbeats
  sweeparea status flights             how far everything is, and what waits for what
  sweeparea sql flights -c 'SELECT * FROM delay_by_origin__current'
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit code."""
    if arguments is None:
        machine.fit_command()
    parser = _parser()
    options = parser.parse_args(_options_last(sys.argv[1:] if arguments is None else arguments, _with_values(parser)))
    try:
        return options.run(options) or 0
    except SweepAreaError as error:
        if options.debug:
            raise
        print(f"sweeparea: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("sweeparea: interrupted; nothing of the slice at work was published, a rerun continues.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except Exception as error:
        if options.debug:
            raise
        from sweeparea.spark_jobs.spark.errors import readable

        shown = readable(error, options.command)
        print(f"sweeparea: {shown} (--debug shows where)", file=sys.stderr)
        return shown.exit_code


def _with_values(parser: argparse.ArgumentParser) -> set[str]:
    """The options of all commands that are followed by a value."""
    commands = [c for action in parser._actions if isinstance(action.choices, dict) for c in action.choices.values()]
    return {text for c in commands for action in c._actions if action.nargs != 0 for text in action.option_strings}


def _options_last(arguments: Sequence[str], valued: Container[str]) -> list[str]:
    """Options behind names: argparse takes an optional name only right behind the application."""
    names, options = [], []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            names += rest
        elif argument.startswith("-") and argument != "-" and not argument[1:2].isdigit():
            options.append(argument)
            if argument in valued:
                options += [value for value in (next(rest, None),) if value is not None]
        else:
            names.append(argument)
    return [*names, *options]


def _parser() -> argparse.ArgumentParser:
    """All commands with their options: long, but flat, one command after the other."""
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--debug", action="store_true", help="show the stack trace of an error")
    where = argparse.ArgumentParser(add_help=False, parents=[shared])
    where.add_argument(
        "--data",
        metavar="FOLDER",
        help="the data folder (default: .data/<name> for an application under queries/, else .data in its own folder)",
    )
    where.add_argument(
        "--env", metavar="NAME", help="an environment of the application's sweeparea.toml (else SWEEPAREA_ENV)"
    )
    folder = "a folder of .cql files, or the name of one under queries/"
    placed = argparse.ArgumentParser(add_help=False, parents=[where])
    placed.add_argument("application", help=folder)

    parser = argparse.ArgumentParser(
        prog="sweeparea", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, run: object, parent: argparse.ArgumentParser, text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, parents=[parent], help=text, description=text[0].upper() + text[1:] + ".")
        command.set_defaults(run=run)
        return command

    command = add("plan", _plan, placed, "show what apply would change: the files against what is deployed")
    command.add_argument("--prune", action="store_true", help="also drop what the files no longer declare")
    command.add_argument("--check", action="store_true", help="exit code 1 if there is anything to apply")
    command.add_argument("--no-diff", action="store_true", help="leave out the texts' differences")
    command.add_argument(
        "--check-types",
        action="store_true",
        help="start Spark, if none runs, to check the types of all expressions that are new (10-15 s)",
    )
    command = add("apply", _apply, placed, "make what is deployed what the files say; shows the plan first")
    command.add_argument("--prune", action="store_true", help="also drop what the files no longer declare")
    command.add_argument(
        "--in-place",
        action="store_true",
        help="drop the old results of a replaced query at once; the next runs compute the new ones",
    )
    command = add("admit", _admit, placed, "take over what is new in the sources of streams and relations")
    command.add_argument("name", nargs="?", help="one stream or relation (default: all)")
    command.add_argument(
        "--take-columns",
        action="store_true",
        help="take over columns that a source has gained (NULL in earlier rows)",
    )
    command.add_argument(
        "--baseline",
        action="store_true",
        help="where versions of a source are gone: go on from it as it is, by the difference to what was admitted",
    )
    command = add("process", _process, placed, "let queries catch up with their inputs' heartbeats, slice by slice")
    command.add_argument("query", nargs="?", help="one continuous query (default: all, in order of dependency)")
    command.add_argument(
        "--until", metavar="INSTANT", help="stop at this instant: 2013-01-31 12:00:00 (UTC), or a tick"
    )
    command = add("backfill", _backfill, placed, "compute a range of a query's results again and replace what differs")
    command.add_argument("query", help="a continuous query")
    command.add_argument("--from", dest="first", metavar="INSTANT", help="the first instant (default: START)")
    command.add_argument("--to", dest="last", metavar="INSTANT", help="the last instant (default: all that is there)")
    command.add_argument("--dry-run", action="store_true", help="tell only what it would read and replace")
    command = add("heartbeat", _heartbeat, where, "move the heartbeat of what is declared HEARTBEAT MANUAL")
    command.add_argument(
        "words",
        nargs="+",
        metavar="[advance] APPLICATION NAME INSTANT",
        help="a stream or relation, and up to when no element will come any more: 2013-01-31 12:00:00 (UTC), or a tick",
    )
    command.set_defaults(wrong=command.error)
    command = add("quarantine", _quarantine, where, "show rows that were kept out, and admit those that were put right")
    command.add_argument("action", choices=("list", "release"), help="list shows rows, release admits them after all")
    command.add_argument("application", help=folder)
    command.add_argument("stream", nargs="?", help="a stream or relation (list: default all)")
    command.add_argument("ids", nargs="*", metavar="ID", help="release: rows by their ids, as list shows them")
    command.add_argument(
        "--where", metavar="SQL", help="rows by a condition over their columns and __reason, __version, __tick, __id"
    )
    command.add_argument(
        "--set",
        dest="assigned",
        action="append",
        default=[],
        metavar="COLUMN=VALUE",
        help="release: correct a column first (NULL is NULL, nested values as JSON); may be given several times",
    )
    command.add_argument("--row", metavar="JSON", help="release: the whole corrected row, as list shows it")
    command.add_argument("--limit", type=int, default=100, help="list: at most so many rows (100)")
    command.add_argument("--format", choices=("table", "json"), default="table", help="list: how rows are printed")
    command = add(
        "status", _status, placed, "show heartbeats, committed instants, state, late rows, and what waits for what"
    )
    command.add_argument("--all", action="store_true", help="also the subplans that queries share")
    command = add("maintain", _maintain, placed, "pack small files, let go what RETAIN allows, delete old files")
    command.add_argument("name", nargs="?", help="one stream, relation or query (default: all, and the ledger)")
    command.add_argument("--dry-run", action="store_true", help="say what would be done; change nothing")
    command.add_argument(
        "--retention",
        metavar="TIME",
        help="how long former versions stay readable: '36 hours' (default: SET maintenance.retention, else 7 days)",
    )
    command = add("check", _check, placed, "verify tables against the ledger, and results against the laws R1 and R2")
    command.add_argument("name", nargs="?", help="one stream, relation or query (default: all)")
    command.add_argument(
        "--rebuild",
        action="store_true",
        help="compute the SweepAreas of the query NAME (default: of each that is damaged), and its results that are"
        " damaged, again from its inputs",
    )
    command = add("explain", _explain, placed, "show how a query will be run; reads no data")
    command.add_argument("query", help="a continuous query of the application, or the text of one in quotes")
    command.add_argument(
        "--form",
        choices=("tree", "mermaid", "svg", "cql"),
        default="tree",
        help="a tree, a picture of the plan, or the plan after its rewrites written back as CQL",
    )
    command = add("replay", _replay, shared, "run small cases (JSON lines) through the real engine, without Airflow")
    command.add_argument("cases", help="a file of cases, one JSON object a line; - for standard input")
    command.add_argument("--out", metavar="FILE", help="where results go, a line each (default: standard output)")
    command = add("sql", _sql, placed, "query the result tables: a prompt, or one statement with -c")
    command.add_argument("-c", dest="statement", metavar="SQL", help="run this statement and end")
    command.add_argument("--format", choices=("table", "csv", "json"), default="table", help="how rows are printed")
    command = add("run", _run, placed, "run statements that act, SHOW, DESCRIBE, PAUSE, DROP ..: a prompt, or -c")
    command.add_argument("-c", dest="statement", metavar="CQL", help="run these statements and end")
    command = add("setup", _setup, shared, "fetch the Delta jars that Spark needs, once; what is there stays")
    command.add_argument("--s3", action="store_true", help="also the jars for object stores on S3 (690 MB)")
    command = add("drop", _drop, placed, "forget a query (or stream) and remove its tables; sources are never touched")
    command.add_argument("name", help="a continuous query, stream or relation")
    return parser


def _open(options: argparse.Namespace, lenient: bool = False) -> Application:
    from sweeparea.spark_jobs.application import Application
    from sweeparea.spark_jobs.declarations.analysis import AskedOnce

    application = Application.open(options.application, options.data, options.env, lenient)
    application.analyze = AskedOnce()
    return application


def _checking(application: Application, start: bool = False) -> Checking:
    """Has Spark check types where a session is at hand, or ``start`` asks for one."""
    from sweeparea.spark_jobs.declarations.analysis import AskedOnce, Checking

    asked = application.analyze
    assert isinstance(asked, AskedOnce)
    return Checking(asked, asked.session if start else asked.at_hand)


def _plan(options: argparse.Namespace) -> int:
    from sweeparea.spark_jobs.orchestration.deployment_plan import text
    from sweeparea.spark_jobs.orchestration.planner import plan

    application = _open(options, lenient=True)
    planned = plan(application, options.prune, True, _checking(application, options.check_types))
    print(text(planned, diffs=not options.no_diff))
    return planned.exit_code or int(options.check and bool(planned.changes))


def _apply(options: argparse.Namespace) -> int:
    from sweeparea.spark_jobs.orchestration.apply import apply
    from sweeparea.spark_jobs.orchestration.deployment_plan import text
    from sweeparea.spark_jobs.orchestration.planner import plan
    from sweeparea.spark_jobs.spark.session import spark_session

    application = _open(options, lenient=True)
    planned = plan(application, options.prune, not options.in_place, _checking(application))
    print(text(planned), flush=True)
    if planned.changes and not planned.problems:
        print()
    apply(application, planned, _tell, spark_session)
    return 0


def _run(options: argparse.Namespace) -> int:
    from sweeparea.spark_jobs.commands.commands import StatementSession, prompt

    session = StatementSession(_open(options))
    if options.statement is None:
        return min(1, prompt(session))
    for said in session.run(options.statement):
        print(said, flush=True)
    return 0


def _setup(options: argparse.Namespace) -> int:
    from sweeparea.infra import settings
    from sweeparea.infra.setup import jars

    jars.bring(options.s3)
    _tell(f"The Delta jars are in {settings.jars_folder()}.")
    return 0


def _tell(text: str) -> None:
    print(text, flush=True)


def _each(options: argparse.Namespace, names: Sequence[str], work: Callable[[str], None]) -> int:
    """``work`` for every name; one that fails is told of and does not stop the others. Returns the exit code."""
    code = 0
    for name in names:
        try:
            work(name)
        except SweepAreaError as error:
            if options.debug or len(names) == 1:
                raise
            print(f"sweeparea: {error}", file=sys.stderr, flush=True)
            code = error.exit_code
    return code


def _admit(options: argparse.Namespace) -> int:
    from sweeparea.spark_jobs.admission.judging.progress import counted
    from sweeparea.spark_jobs.commands.jobs import admit

    application = _open(options)

    def work(name: str) -> None:
        report = admit(application, name, tell=_tell, take_columns=options.take_columns, baseline=options.baseline)
        text = f"{name}: {counted(report['rows'], 'row')} of {counted(report['versions'], 'new source version')}"
        if report["quarantined"]:
            text += "; quarantined: " + ", ".join(f"{n} ({reason})" for reason, n in report["quarantined"].items())
        if report["ignored"]:
            text += f"; {report['ignored']} rows that the source removed stay elements (ON SOURCE CHANGE IGNORE)"
        if report["taken_back"] or report["cancelled"]:
            text += f"; taken back by the source: {report['taken_back']} elements, {report['cancelled']} in quarantine"
        if report["deduplicated"]:
            text += f"; {report['deduplicated']} duplicates dropped"
        if report["reinstated"] or report["displaced"]:
            text += f"; {report['reinstated']} duplicates became elements in place of what was taken back"
            text += f", {report['displaced']} elements became duplicates of these" if report["displaced"] else ""
        if report["late"]:
            text += f"; {report['late']} late ones repair results"
        if report["warned"]:
            text += "; violated but kept: " + ", ".join(f"{n} ({c})" for c, n in report["warned"].items())
        _tell(text)

    names = [options.name] if options.name else [*application.catalog.relations, *application.catalog.streams]
    return _each(options, names, work)


def _process(options: argparse.Namespace) -> int:
    from sweeparea.spark_jobs.commands.jobs import process
    from sweeparea.spark_jobs.spark.instants import instant_text, tick_of

    application = _open(options)

    def work(name: str) -> None:
        time = application.plans.plan(name).time
        until = None if options.until is None else tick_of(options.until, time)
        report = process(application, name, until=until, tell=_tell)
        committed = report["committed"]
        done = "not processed yet" if committed is None else f"committed up to {instant_text(time, committed)}"
        if report["paused"]:
            resume = application.command("run", "-c", f"RESUME CONTINUOUS QUERY {name}")
            _tell(f"{name}: paused, {done}; `{resume}` lets it go on")
            return
        if report["slices"] or report["repaired"]:
            _tell(f"{name}: {done}, {report['rows_out']} rows out, {report['seconds']} s")
            return
        waits = f"; waits for the heartbeat of {report['waits_for']}" if report["waits_for"] else ""
        missing = [n for n in application.catalog.dependencies(name) if n not in application.ledger.head()]
        if missing:
            waits = f"; {', '.join(missing)} has not run yet (`sweeparea admit`, or `process` for a query)"
        _tell(f"{name}: nothing to do, {done}{waits}")

    return _each(options, [options.query] if options.query else list(application.catalog.queries), work)


def _backfill(options: argparse.Namespace) -> int:
    from sweeparea.spark_jobs.commands.jobs import recompute
    from sweeparea.spark_jobs.rewriting.backfill import outlook
    from sweeparea.spark_jobs.spark.instants import tick_of

    application = _open(options)
    application.query(options.query)
    time = application.plans.plan(options.query).time
    first, last = (None if text is None else tick_of(text, time) for text in (options.first, options.last))
    if options.dry_run:
        print(outlook(application, options.query, first, last))
        return 0
    recompute(application, options.query, first, last, _tell)
    return 0


def _heartbeat(options: argparse.Namespace) -> int:
    from sweeparea.spark_jobs.admission.heartbeat import advance_to

    words = options.words[1:] if options.words[0] == "advance" else options.words
    if len(words) != 3:
        options.wrong("write sweeparea heartbeat advance APPLICATION NAME INSTANT")
    options.application, name, instant = words
    now, before = advance_to(_open(options), name, instant)
    _tell(f"{name}: heartbeat {now} (was {before or 'nowhere'})")
    return 0


def _quarantine(options: argparse.Namespace) -> int:
    application = _open(options)
    if options.action == "list":
        from sweeparea.spark_jobs.admission.judging.quarantine import listing

        print(listing(application, options.stream, options.where, options.format, options.limit))
        return 0
    from sweeparea.spark_jobs.admission.release.release_rows import WantedRows
    from sweeparea.spark_jobs.commands.jobs import release

    if options.stream is None:
        raise UsageError("Say which stream's rows are to be released: `sweeparea quarantine release APP STREAM ID`.")
    assigned = dict(text.partition("=")[::2] for text in options.assigned)
    wanted = WantedRows(tuple(options.ids), options.where, assigned, options.row)
    report = release(application, options.stream, wanted)
    repaired = f", {report['repaired']} of them below the heartbeat: results are repaired" if report["repaired"] else ""
    _tell(f"{options.stream}: {report['rows']} rows released{repaired}")
    for row, reason in report["refused"]:
        print(f"sweeparea: {row} stays in quarantine: {reason}", file=sys.stderr)
    return 1 if report["refused"] else 0


def _status(options: argparse.Namespace) -> int:
    from sweeparea.spark_jobs.commands.status import status

    print(status(_open(options), options.all))
    return 0


def _maintain(options: argparse.Namespace) -> int:
    from sweeparea.spark_jobs.upkeep.maintain import maintain

    report = maintain(_open(options), options.name, dry_run=options.dry_run, retention=options.retention, tell=_tell)
    return 1 if report.problems else 0


def _check(options: argparse.Namespace) -> int:
    from sweeparea.spark_jobs.commands.jobs import rebuild
    from sweeparea.spark_jobs.upkeep.check import check
    from sweeparea.spark_jobs.upkeep.rebuild import in_order_of_reading

    application = _open(options)
    if options.rebuild and options.name is not None and not application.is_query(options.name):
        known = ", ".join(application.catalog.queries) or "none"
        raise SweepAreaError(
            f"{options.name} is no query, and only queries can be computed again. Queries: {known}. Of a stream or"
            " relation restore a backup, or drop it and admit its source anew."
        )
    found, code = check(application, options.name, _tell), 0
    if options.rebuild:
        wrong = [name for name in found.wrong if application.is_query(name)]
        names = in_order_of_reading(application, wrong) if options.name is None else [options.name]

        def work(name: str) -> None:
            _tell(f"{name}: {rebuild(application, name, found.damaged.get(name, ()), _tell)}")

        code = _each(options, names, work)
        if names:
            found = check(application, options.name, _tell)
    faults = sum(map(len, found.wrong.values()))
    _tell(f"{faults} faults" if faults else "all as the ledger says")
    return code or (1 if faults else 0)


def _explain(options: argparse.Namespace) -> int:
    from sweeparea.spark_jobs.orchestration.explaining import explained_text

    application = _open(options)
    for name in (*application.catalog.streams, *application.catalog.relations):
        if options.query in application.catalog.queries and name in application.catalog.dependencies(options.query):
            application.sources.check(name)  # faults of what it reads are told here already
    print(explained_text(application, options.query, options.form))
    return 0


def _replay(options: argparse.Namespace) -> int:
    import json

    from sweeparea.spark_jobs.cases.replay import replay
    from sweeparea.spark_jobs.spark.session import spark_session

    if options.cases == "-":
        lines = sys.stdin.readlines()
    else:
        try:
            lines = Path(options.cases).read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"The cases {options.cases} cannot be read: {error}.") from None
    failed = 0
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(_opened(options.out)) if options.out else sys.stdout
        trace = sys.stderr.write if options.debug else None
        for result in replay(lines, stack.enter_context(spark_session()), trace):
            failed += "error" in result
            out.write(json.dumps(result, ensure_ascii=False, allow_nan=False) + "\n")
            out.flush()
    if options.out:
        cases = sum(1 for line in lines if line.strip())
        _tell(f"{cases} cases, {failed} ended with an error; results are in {options.out}")
    return 0


def _opened(path: str) -> IO[str]:
    try:
        return Path(path).open("w", encoding="utf-8")
    except OSError as error:
        raise SweepAreaError(f"The results cannot be written to {path}: {error.strerror}.") from None


def _sql(options: argparse.Namespace) -> int:
    from sweeparea.spark_jobs.commands.sql import Reader, prompt

    reader = Reader(_open(options))
    if options.statement is None:
        return min(1, prompt(reader, options.format))
    print(reader.run(options.statement, options.format))
    return 0


def _drop(options: argparse.Namespace) -> int:
    from sweeparea.spark_jobs.orchestration.drop import drop

    application = _open(options)
    for line in drop(application, options.name):
        _tell(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
