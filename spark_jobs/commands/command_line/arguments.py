"""How the words of a command line are told apart.

Options may stand before, between and behind names, even before the command; a long option may be shortened while it is
the only one that begins so; a negative number is a name. A first ``--`` is passed over; behind a second one all words
are names. click takes ``--option value .. -- name ..`` whatever the names look like, so that is what it gets.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

import click

_NUMBER = re.compile(r"-\d+|-\d*\.\d+")


def command_first(arguments: Sequence[str], valued: frozenset[str]) -> list[str]:
    """The command, then the other words as they stand; empty if there is no command.

    ``valued`` are the options of all commands that are followed by a value.
    """
    words = iter(enumerate(arguments))
    for place, word in words:
        if word in valued:
            next(words, None)
        elif not word.startswith("-") or word == "-" or _NUMBER.fullmatch(word):
            return [word, *arguments[:place], *arguments[place + 1 :]]
    return []


def options_first(arguments: Sequence[str], options: Mapping[str, click.Option], context: click.Context) -> list[str]:
    """``--option value .. -- name ..``, every option with its full name; only ``--help`` if that is asked for.

    ``options`` are those of the command by their names. Raises click's UsageError where an option is unknown, means
    several, lacks its value or has one too many.
    """
    given: list[str] = []
    names: list[str] = []
    unknown: list[str] = []
    passed = False
    rest = list(reversed(arguments))
    while rest:
        word = rest.pop()
        if word == "--":
            if passed:
                names += reversed(rest)
                break
            passed = True  # ``admit -- shop --debug`` has always had an option at its end
            continue
        if _is_name(word, options):
            names.append(word)
            continue
        option, value = _meant(word, options, context)
        if option is None:
            unknown.append(word)
        elif option in context.help_option_names:
            return [option]
        elif options[option].is_flag:
            if value is not None:
                context.fail(f"argument {option}: ignored explicit argument {value!r}")
            given.append(option)
        else:
            if value is None:
                if not rest or not _is_name(rest[-1], options):
                    context.fail(f"argument {option}: expected one argument")
                value = rest.pop()
            given += (option, value)
    if unknown:
        near = [option for option in options if option not in context.help_option_names]
        raise click.NoSuchOption(unknown[0], f"unrecognized arguments: {' '.join(unknown)}.", near, context)
    return [*given, "--", *names]


def asks_for_help(arguments: Sequence[str], context: click.Context) -> bool:
    """Whether ``-h``, ``--help`` or a beginning of it is among words without a command."""
    return any(word != "--" and _candidates(word, context.help_option_names) for word in arguments)


def _is_name(word: str, options: Mapping[str, click.Option]) -> bool:
    """Whether a word is no option. Text with a space, such as a statement that begins with a comment, is a name too."""
    if not word.startswith("-") or word == "-" or _NUMBER.fullmatch(word):
        return True
    return " " in word and not _candidates(word, options)


def _meant(word: str, options: Mapping[str, click.Option], context: click.Context) -> tuple[str | None, str | None]:
    """The option that a word names, and the value that is written into it; no option if none is called so."""
    found = _candidates(word, options)
    if len(found) > 1:
        could = ", ".join(option for option, _ in found)
        context.fail(f"ambiguous option: {word} could match {could}")
    return found[0] if found else (None, None)


def _candidates(word: str, options: Collection[str]) -> list[tuple[str, str | None]]:
    """The options that a word may name, as ``--option``, ``--option=value``, ``--opt``, ``-o`` or ``-ovalue``."""
    if word in options:
        return [(word, None)]
    option, equals, value = word.partition("=")
    if equals and option in options:
        return [(option, value)]
    if word.startswith("--"):
        return [(name, value if equals else None) for name in options if name.startswith(option)]
    return [(word[:2], word[2:])] if word[:2] in options else []
