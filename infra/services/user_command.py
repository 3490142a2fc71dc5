"""``make user``, ``make users``: who may log in to Airflow (``users.py``)."""

from __future__ import annotations

import getpass
import sys

from sweeparea.infra.errors import exit_code_of
from sweeparea.infra.services import airflow, users

USAGE = """\
usage: python -m sweeparea.infra.services.user_command list
       python -m sweeparea.infra.services.user_command set NAME ROLE [--ask]    adds a user, or changes the role
       python -m sweeparea.infra.services.user_command password NAME [--ask]    a new password
       python -m sweeparea.infra.services.user_command remove NAME
ROLE is viewer, user, op or admin. Without --ask a password is made and shown once; with it, it is read from the
terminal or standard input."""


def main(arguments: list[str]) -> int:
    """The command; a server that runs is started again, for it knows users from its start."""
    home, ask = airflow.home(), "--ask" in arguments
    words = [word for word in arguments if word != "--ask"]

    def password() -> str | None:
        if not ask:
            return None
        return getpass.getpass("Password: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")

    def command() -> int:
        match words:
            case ["list"]:
                for name, role in users.users(home).items():
                    print(f"{name:24} {role}")
                return 0
            case ["set", name, role]:
                made = users.put(home, name, role.lower(), password())
                print(f"{name} is {role.lower()}.")
            case ["password", name]:
                made = users.change_password(home, name, password())
                print(f"{name} has another password.")
            case ["remove", name]:
                made = users.remove(home, name)
                print(f"{name} is no user any more; a session that is open lasts until its token expires.")
            case _:
                print(USAGE, file=sys.stderr)
                return 2
        if made:
            print(f"the password, printed this once: {made}")
        if words[0] != "password" and airflow.restart_api_server():
            print("Airflow's API server was started again.")
        return 0

    return exit_code_of(command, "`make users` shows how things stand")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
