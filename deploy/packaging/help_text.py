# SPDX-License-Identifier: Apache-2.0
"""What a program's --help says, as values: the one source of man pages and completion.

Refuses a line that it does not understand, so nothing is left out silently.
"""

import dataclasses
import re
import subprocess

_OPTION = re.compile(r"^  (-\S+)(?: ([A-Z]+)(?= |$))?(?:\s+(\S.*)|)$")
_CONTINUED = re.compile(r"^\s{20,}(\S.*)$")
_ORIGIN = re.compile(r"^(.*?)\s*\[(COVEY_[A-Z0-9_]+)(?:=(.*))?\]$")
_COMMAND = re.compile(r"^  ([a-z]+(?:-[a-z]+)*)\s+(\S.*)$")
_CHOICE = re.compile(r"^  ([a-z-]+): (.*)$")
_WORD = re.compile(r"^[a-z][a-z-]*$")


@dataclasses.dataclass
class Option:
    flags: list          # ["-h", "--help"]
    value: str           # placeholder of its value; empty for a switch
    help: str
    variable: str = ""   # in the environment; empty = none
    default: str = ""


@dataclasses.dataclass
class Page:
    """The help of a program, or of one command of `covey`."""

    name: str            # "covey run"
    summary: str         # one line
    description: str
    choices: list        # (word, meaning): what the first argument may be, when the help lists that
    options: list
    arguments: str       # what follows the options; empty = nothing
    arguments_help: str
    commands: list = dataclasses.field(default_factory=list)  # (name, summary); of `covey` itself

    def words(self):
        """What the first argument may be; empty when that is a name of the user's."""
        alternatives = [text.strip(" []").split(" ")[0] for text in self.arguments.split("|")]
        return [word for word, _ in self.choices] + [
            word for word in alternatives if _WORD.match(word)]


def ask(program, *arguments):
    """The standard output of `program`, which must succeed."""
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    return subprocess.run([program, *arguments], check=True, stdout=subprocess.PIPE, text=True,
                          env=environment, encoding="utf-8").stdout


def version_of(program):
    """The version that `program` reports: the one in common/base/version.h."""
    return ask(program, "--version").split()[-1]


def page_of(name, text, summary=""):
    """The page in `text`, the --help of `name`; without `summary`, its first sentence is that."""
    page = Page(name, summary, "", [], [], "", "")
    lines = iter(text.splitlines())
    paragraphs = []
    for line in lines:
        if line.startswith("Usage: "):
            break
        if choice := _CHOICE.match(line):
            page.choices.append(choice.groups())
        elif line:
            paragraphs.append(line)
    page.description = " ".join(paragraphs)
    for line in lines:
        if not line or line == "Options:":
            continue
        if line.startswith("After the options: "):
            rest = line[len("After the options: "):].strip()
            arguments, _, meaning = rest.partition("   ")
            page.arguments, page.arguments_help = arguments.strip(), meaning.strip()
        elif option := _OPTION.match(line):
            flags, value, meaning = option.groups()
            page.options.append(Option(flags.split(","), value or "", meaning or ""))
        elif (continued := _CONTINUED.match(line)) and page.options:
            page.options[-1].help = f"{page.options[-1].help} {continued.group(1)}".strip()
        else:
            raise ValueError(f"{name} --help: no option in the line '{line}'")
    for option in page.options:
        if origin := _ORIGIN.match(option.help):
            option.help, option.variable, option.default = origin.group(1), origin.group(2), (
                origin.group(3) or "")
    if not page.options:
        raise ValueError(f"{name} --help: no options in it")
    page.summary = summary or page.description.split(". ")[0].rstrip(".")
    return page


def covey_page(text):
    """The page of `covey` itself, which lists its commands."""
    usage, *lines = text.splitlines()
    page = Page("covey", "parameter server with hybrid synchrony", "", [], [], "", "")
    if usage != "usage: covey COMMAND [OPTION...]":
        raise ValueError(f"covey --help begins with '{usage}'")
    paragraphs = []
    for line in lines:
        if command := _COMMAND.match(line):
            page.commands.append(command.groups())
        elif line:
            paragraphs.append(line)
    if not page.commands:
        raise ValueError("covey --help: no commands in it")
    page.description = " ".join(paragraphs)
    return page


def pages_of(covey, others):
    """All pages, from the programs themselves: `covey`, its commands, then `others`."""
    first = covey_page(ask(covey, "--help"))
    pages = [first]
    for name, summary in first.commands:
        pages.append(page_of(f"covey {name}", ask(covey, name, "--help"), summary))
    for program in others:
        pages.append(page_of(program.rpartition("/")[2], ask(program, "--help")))
    return pages
