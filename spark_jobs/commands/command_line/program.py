"""The command ``sweeparea`` with all its commands, in the order of a first round by hand."""

from __future__ import annotations

from sweeparea.spark_jobs.commands.command_line.accept import accept
from sweeparea.spark_jobs.commands.command_line.admit import admit
from sweeparea.spark_jobs.commands.command_line.backfill import backfill
from sweeparea.spark_jobs.commands.command_line.check import check
from sweeparea.spark_jobs.commands.command_line.command import SETTINGS, Program
from sweeparea.spark_jobs.commands.command_line.deploy import apply, drop, plan
from sweeparea.spark_jobs.commands.command_line.doctor import doctor
from sweeparea.spark_jobs.commands.command_line.explain import explain
from sweeparea.spark_jobs.commands.command_line.heartbeat import heartbeat
from sweeparea.spark_jobs.commands.command_line.maintain import maintain
from sweeparea.spark_jobs.commands.command_line.metrics import metrics
from sweeparea.spark_jobs.commands.command_line.process import process
from sweeparea.spark_jobs.commands.command_line.profile import profile
from sweeparea.spark_jobs.commands.command_line.quality import quality
from sweeparea.spark_jobs.commands.command_line.quarantine import quarantine
from sweeparea.spark_jobs.commands.command_line.replay import replay
from sweeparea.spark_jobs.commands.command_line.setup import setup
from sweeparea.spark_jobs.commands.command_line.spark_server import spark_server
from sweeparea.spark_jobs.commands.command_line.statements import run, sql
from sweeparea.spark_jobs.commands.command_line.status import status

# \b: click keeps the lines of a paragraph as they are
DESCRIPTION = """\
SweepArea keeps continuous queries exact over Delta tables.

\b
An application is a folder of .cql files that declare streams, relations and continuous queries. Name it by its
folder, or by its name under queries/. A first round by hand:

\b
sweeparea plan flights               what the files say against what is deployed; `apply` deploys it
sweeparea admit flights              take over what is new in the sources of all streams and relations
sweeparea process flights            let every query catch up with its inputs' heartbeats
sweeparea status flights             how far everything is, and what waits for what
sweeparea sql flights -c 'SELECT * FROM delay_by_origin__current'
"""

PROGRAM = Program(
    "sweeparea",
    help=DESCRIPTION,
    no_args_is_help=False,
    subcommand_metavar="COMMAND ...",
    context_settings=SETTINGS,
    commands=[
        plan,
        apply,
        admit,
        process,
        backfill,
        heartbeat,
        quarantine,
        quality,
        profile,
        accept,
        status,
        metrics,
        maintain,
        check,
        explain,
        replay,
        sql,
        run,
        setup,
        spark_server,
        doctor,
        drop,
    ],
)
