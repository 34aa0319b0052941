# SPDX-License-Identifier: Apache-2.0
"""Small changes of C++ text, each of which a test should notice. Pure.

Comments, literals, preprocessor lines, lines of logs, texts of errors, checks and declarations of
types stay as they are.
The text must be formatted (tools/dev fmt): only operators have spaces around them.
"""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Mutation:
    begin: int
    end: int
    # What stands there instead of text[begin:end].
    after: str
    kind: str

    def apply(self, text):
        return text[:self.begin] + self.after + text[self.end:]

    def line(self, text):
        return text.count("\n", 0, self.begin) + 1

    def show(self, text):
        """One line: the kind, and the changed lines before and after."""
        first = text.rfind("\n", 0, self.begin) + 1
        last = text.find("\n", self.end)
        last = len(text) if last < 0 else last
        changed = text[first:self.begin] + self.after + text[self.end:last]
        return f"{self.kind}: `{_squeezed(text[first:last])}` -> `{_squeezed(changed)}`"


def _squeezed(text):
    return " ".join(text.split())


# Blanked out: comments, literals, and preprocessor lines, which may go on in the next one.
_QUIET = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"\(.*?\)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\''
    r"|^[ \t]*#(?:\\\n|[^\n])*", re.DOTALL | re.MULTILINE)
# Blanked out up to the parenthesis that closes: what is for people, and what is true by
# construction. And declarations of names, up to their end.
_QUIET_CALLS = re.compile(r"\b(?:Log(?:Info|Warning|Error|Debug)|absl::\w+Error|COVEY_CHECK"
                          r"|COVEY_EVENT|static_assert)\(")
_QUIET_NAMES = re.compile(r"\b(?:using|namespace)\b[^;{]*")
_FLIPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||",
          "||": "&&", "+": "-", "-": "+", "+=": "-=", "-=": "+=", "true": "false",
          "false": "true"}
_KINDS = {"&&": "condition", "||": "condition", "+": "arithmetic", "-": "arithmetic",
          "+=": "arithmetic", "-=": "arithmetic", "true": "constant", "false": "constant"}
_OPERATOR = re.compile(r"(?<= )(<=?|>=?|==|!=|&&|\|\||[+-]=?)(?=\s)")
_BOOLEAN = re.compile(r"\b(true|false)\b")
_INTEGER = re.compile(r"(?<![\w.'])(\d+)(?=[uUlL]*\b)(?![\w.']*[.'xX])")
_OPERAND = r"[A-Za-z_][\w.]*(?:\(\))?|\d+"
_DIFFERENCE = re.compile(rf"(?<![\w.)\]>] )(?<![\w.>])({_OPERAND}) - ({_OPERAND})(?![\w.(\[]|->|::)")
_IF = re.compile(r"\bif (?:constexpr )?\(")
_GUARD = re.compile(r"^ +if \([^\n]*\) (return\b[^\n]*|continue|break);$", re.MULTILINE)
_PROPAGATION = re.compile(r"^ +COVEY_RETURN_IF_ERROR\([^\n]*\);$", re.MULTILINE)
_STATEMENT = re.compile(
    r"^ +(?:\*?[\w.:]+(?:\[[^\]\n]*\]|->|\(\)|[\w.])* (?:[-+|&]?=) [^\n]*|(?:\+\+|--)[\w.>\[\]-]+"
    r"|[a-z_](?:[\w.]|->|::|\[[^\]\n]*\])*\([^\n]*\));$", re.MULTILINE)
_NO_STATEMENT = re.compile(r"^ +(return|delete|throw|co_return|else|case|using|if|for|while|switch)\b")


def _blank(text, begin, end):
    return text[:begin] + re.sub(r"[^\n]", " ", text[begin:end]) + text[end:]


def code_of(text):
    """`text` with blanks in place of what is never changed; every place stays where it is."""
    code = _QUIET.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    for match in [*_QUIET_CALLS.finditer(code), *_QUIET_NAMES.finditer(code)]:
        end = match.end()
        if match.group().endswith("("):
            end = _closing(code, end - 1) + 1 or len(code)
        code = _blank(code, match.start(), end)
    return code


def _closing(code, at):
    """The place of the parenthesis that closes the one at `at`; -1 = there is none."""
    depth = 0
    for place in range(at, len(code)):
        depth += {"(": 1, ")": -1}.get(code[place], 0)
        if depth == 0:
            return place
    return -1


def _whole(statement):
    """Whether all that it opens, it closes."""
    return all(statement.count(a) == statement.count(b) for a, b in ("()", "{}", "[]"))


def mutations(text):
    """All of a file, by place."""
    code = code_of(text)
    found = []

    def add(begin, end, after, kind):
        if code[begin:end].strip():
            found.append(Mutation(begin, end, after, kind))

    for pattern in (_OPERATOR, _BOOLEAN):
        for match in pattern.finditer(code):
            word = match.group(1)
            add(*match.span(1), _FLIPS[word], _KINDS.get(word, "comparison"))
    for match in _INTEGER.finditer(code):
        add(*match.span(1), str(int(match.group(1)) + 1), "constant")
    for match in _DIFFERENCE.finditer(code):
        add(*match.span(), f"{match.group(2)} - {match.group(1)}", "swapped operands")
    for match in _IF.finditer(code):
        begin = match.end()
        end = _closing(code, begin - 1)
        if end > begin and ";" not in code[begin:end]:
            add(begin, end, f"!({text[begin:end]})", "negated condition")
    dropped = set()
    for pattern, kind in ((_GUARD, "removed guard"), (_PROPAGATION, "removed guard"),
                          (_STATEMENT, "dropped statement")):
        for match in pattern.finditer(code):
            statement = match.group()
            if match.start() in dropped or not _whole(statement):
                continue
            if kind == "dropped statement" and (_NO_STATEMENT.match(statement)
                                                or not _begins(code, match.start())):
                continue
            dropped.add(match.start())
            begin = match.end() - len(statement.lstrip())
            add(begin, match.end(), "", kind)
    return sorted(found, key=lambda mutation: (mutation.begin, mutation.end, mutation.after))


def _begins(code, at):
    """Whether a statement begins at `at`, and not in the middle of one."""
    before = code[:at].rstrip()
    return not before or before[-1] in ";{}:"
