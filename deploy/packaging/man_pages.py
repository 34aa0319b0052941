# SPDX-License-Identifier: Apache-2.0
"""Man pages from the --help of the programs."""

import datetime

_ESCAPES = str.maketrans({
    "\\": "\\(rs", "-": "\\-", "`": "\\(ga", "'": "\\(aq", "^": "\\(ha", "~": "\\(ti"})


def _text(text):
    """`text` for the middle of a page: no letter of it is a command."""
    escaped = text.translate(_ESCAPES)
    return "\\&" + escaped if escaped.startswith(".") else escaped


def section(page):
    """Programs that run as services are in section 8."""
    return 1 if page.name.split()[0] == "covey" else 8


def file_name(page):
    return f"{page.name.replace(' ', '-')}.{section(page)}"


def man_page(page, version, epoch, pages):
    """The page in the language of man; `epoch`: the seconds that date it; `pages`: all of them."""
    date = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%d")
    title = page.name.replace(" ", "-")
    lines = [
        f".TH {_text(title.upper())} {section(page)} {date} \"covey {version}\" \"Covey\"",
        ".nh",  # flags are not broken at a hyphen
        ".ad l",
        ".SH NAME",
        f"{_text(title)} \\- {_text(page.summary)}",
        ".SH SYNOPSIS",
        f".B {_text(page.name)}",
        "[OPTION...]" if not page.commands else "COMMAND [OPTION...]",
        *([_text(page.arguments)] if page.arguments else []),
        ".SH DESCRIPTION",
        _text(page.description),
    ]
    for word, meaning in page.choices:
        lines += [".TP", f".B {_text(word)}", _text(meaning)]
    if page.commands:
        lines.append(".SH COMMANDS")
    for name, summary in page.commands:
        lines += [".TP", f".B {_text(name)}", _text(f"{summary}; see ")
                  + f"\\fBcovey\\-{_text(name)}\\fR(1)."]
    if page.options:
        lines.append(".SH OPTIONS")
    for option in page.options:
        flags = ", ".join(f"\\fB{_text(flag)}\\fR" for flag in option.flags)
        lines += [".TP", flags + (f" \\fI{option.value}\\fR" if option.value else "")]
        lines.append(_text(option.help))
        if option.variable:
            default = f"; default: {option.default}" if option.default else ""
            lines += [".br", _text(f"Environment: {option.variable}{default}")]
    if page.arguments_help:
        lines += [".SH ARGUMENTS", _text(page.arguments), ".br", _text(page.arguments_help)]
    others = [other for other in pages if other is not page
              and (len(other.name.split()) == 1 or page.commands)]
    references = [f"\\fB{_text(other.name.replace(' ', '-'))}\\fR({section(other)})"
                  for other in others]
    lines += [".SH SEE ALSO", ",\n".join(references)]
    return "\n".join(lines) + "\n"
