"""Finds mutants of a line of C++: the pure part of tools/mutate."""

import re
from typing import NamedTuple


class Mutant(NamedTuple):
    number: int  # the number of the line, from 1
    what: str
    before: str
    after: str


COMPARISONS = {" == ": " != ", " != ": " == ", " < ": " <= ", " <= ": " < ",
               " > ": " >= ", " >= ": " > "}
LOGIC = {" && ": " || ", " || ": " && ", " + ": " - ", " - ": " + "}
TRUTH = {"true": "false", "false": "true"}
CONSTANT = re.compile(r"(?<![\w.'])(\d+)(?=[uU]?[lL]{0,2}\b)(?!['.])")
WORD = re.compile(r"\b(?:true|false)\b")
# A condition on one line, up to its closing parenthesis.
CONDITION = re.compile(r"\b((?:if|while) )\((.*)\)( .*;| \{)$")
# A call, an assignment or a step, but not a declaration or a return.
STATEMENT = re.compile(
    r"^\s+(?:[\w.>\[\]*:-]+\(.*\)|[*]?[\w.\[\]>()-]+ [-+|&]?= .*"
    r"|\+\+[\w.>-]+|--[\w.>-]+)\s*;$")
NO_STATEMENT = re.compile(
    r".*\) = (?:default|delete);|"
    r"\s+(?:return|delete|using|static_assert|assert|const|auto|explicit|"
    r"case|default|break|continue|throw|friend|typedef|else)\b")
# The end of the text after which a statement may begin.
BEFORE_STATEMENT = re.compile(r"(?:[;{}:]|\))\s*$")
SKIPPED = re.compile(r"\s*(?:#|//|static_assert|namespace|template|using )")


def code_of(line):
    """Returns the line with its comment and its string contents blanked out."""
    line = re.sub(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)+\'',
                  lambda text: "_" * len(text[0]), line)
    return re.sub(r"//.*", lambda text: " " * len(text[0]), line)


def other(constant):
    """Returns a constant so much larger that a test of a limit must notice."""
    return constant + 1 if constant < 3 else 2 * constant


def replaced(line, at, old, new):
    return line[:at] + new + line[at + len(old):]


def swaps(line, code):
    """Yields mutants that replace one token by another."""
    for table, what in ((COMPARISONS, "flips a comparison"),
                        (LOGIC, "changes an operator")):
        for old, new in table.items():
            for found in re.finditer(re.escape(old), code):
                yield what, replaced(line, found.start(), old, new)
    for found in WORD.finditer(code):
        yield "flips a truth", replaced(line, found.start(), found[0],
                                        TRUTH[found[0]])
    for found in CONSTANT.finditer(code):
        yield "changes a constant", replaced(line, found.start(), found[1],
                                             str(other(int(found[1]))))


def negation(line, code):
    found = CONDITION.search(code)
    if not found or found[2].count("(") != found[2].count(")"):
        return
    if ";" in found[2]:
        return
    inner = line[found.start(2):found.end(2)]
    yield ("negates a condition",
           line[:found.start(2)] + f"!({inner})" + line[found.end(2):])


def dropping(line, code, previous):
    if (STATEMENT.match(code.rstrip()) and not NO_STATEMENT.match(code)
            and BEFORE_STATEMENT.search(previous)):
        indent = line[:len(line) - len(line.lstrip())]
        yield "drops a statement", indent + ";"


def mutants(text):
    """Yields all mutants of a file, in the order of its lines."""
    found, previous = [], ""
    for number, line in enumerate(text.split("\n"), 1):
        code = code_of(line)
        if code.strip() and not SKIPPED.match(code):
            for what, after in [*swaps(line, code), *negation(line, code),
                                *dropping(line, code, previous)]:
                found.append(Mutant(number, what, line, after))
        if code.strip():
            previous = code
    return found


def applied(text, mutant):
    lines = text.split("\n")
    assert lines[mutant.number - 1] == mutant.before
    lines[mutant.number - 1] = mutant.after
    return "\n".join(lines)
