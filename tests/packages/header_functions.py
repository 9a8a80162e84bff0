"""Finds the functions that a header declares and a library has to define.

A scanner for headers in the style of penstock/: no macros, no preprocessor but
#include and guards. The scanner understands a declaration or raises
ValueError, so that no declaration is left out.
"""

import dataclasses
import re

_TYPE = re.compile(r"(?:class|struct|union)\s+(\w+)[^()]*$")
_ACCESS = re.compile(r"(public|protected|private)\s*:(?!:)\s*")
_FUNCTION = re.compile(
    r"(?P<before>[\w:<>,&*\s]*?)(?P<name>operator[^\w\s(]+|~?\w+)"
    r"\s*\((?P<parameters>.*)\)\s*(?P<const>const)?$", re.DOTALL)
# The beginnings of declarations that are no functions of a library.
_OTHERS = re.compile(r"(using|typedef|friend|static_assert|template|extern)\b")
_ATTRIBUTE = re.compile(r"\[\[[^\]]*\]\]\s*")
_GIVEN = re.compile(r"=\s*(default|delete|0)$")


@dataclasses.dataclass(frozen=True)
class Function:
    scope: str  # "penstock::Allocator"
    in_class: bool  # not in a namespace
    name: str
    returns: str
    parameters: str  # with their names, without default values
    is_member: bool  # not a static one
    is_const: bool


def functions_of(header):
    """Returns the public text of a header, in order."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", header, flags=re.DOTALL)
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.MULTILINE)
    text = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
    text = _ATTRIBUTE.sub("", text)
    found = []
    _scan(text, "", None, found)
    return found


def _scan(text, scope, access, found):
    """Appends the functions that `text` declares to `found`. `access` is None
    in a namespace."""
    begin = 0
    while begin < len(text):
        end, is_block = _end_of_statement(text, begin)
        head = text[begin:end].strip()
        while access is not None and (label := _ACCESS.match(head)):
            access, head = label[1], head[label.end():]
        begin = end + 1
        if not is_block:
            if access != "private":
                found += _declared(head, scope, access)
            continue
        close = _closing(text, end)
        inside, begin = text[end + 1:close], close + 1
        if head.startswith("namespace"):
            name = head.split()[1] if len(head.split()) > 1 else "(anonymous)"
            _scan(inside, f"{scope}::{name}".lstrip(":"), None, found)
        elif head.startswith("template"):
            raise ValueError(f"a template: {head}")
        elif not head.startswith("enum") and (type_ := _TYPE.match(head)):
            if access != "private":
                _scan(inside, f"{scope}::{type_[1]}",
                      "private" if head.startswith("class") else "public",
                      found)
        # Every other declaration is an enum, a variable, or a function with a
        # body.


def _end_of_statement(text, begin):
    """Returns the end of the next ";" or "{" outside parentheses, and True for
    "{"."""
    depth = 0
    for at in range(begin, len(text)):
        if text[at] in "()":
            depth += 1 if text[at] == "(" else -1
        elif depth == 0 and text[at] in ";{":
            return at, text[at] == "{"
    if text[begin:].strip():
        raise ValueError(f"no end: {text[begin:].strip()}")
    return len(text), False


def _closing(text, begin):
    depth = 0
    for at in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at
    raise ValueError(f"no end: {text[begin:]}")


def _declared(head, scope, access):
    if _OTHERS.match(head):
        if "(" in head and not head.startswith(("using", "friend")):
            raise ValueError(f"not understood: {head}")
        return []
    if "(" not in head or _GIVEN.search(head):
        return []
    match = _FUNCTION.match(head)
    if match is None:
        raise ValueError(f"not understood: {head}")
    words = match["before"].split()
    before = [w for w in words if w not in ("static", "virtual", "explicit")]
    if not before and not match["name"].startswith("~"):
        raise ValueError(f"a constructor that is not inline: {head}")
    return [Function(
        scope, access is not None, match["name"], " ".join(before),
        ", ".join(p.partition("=")[0].strip()
                  for p in _split(match["parameters"])),
        access is not None and "static" not in words,
        match["const"] is not None)]


def _split(parameters):
    """Splits at commas outside brackets."""
    parts, depth = [""], 0
    for letter in parameters:
        depth += {"<": 1, "(": 1, "{": 1, ">": -1, ")": -1, "}": -1}.get(
            letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
