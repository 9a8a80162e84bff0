"""Counts the methods of C++ classes, without a compiler.

A method is a declaration of a member function in the class's body: private
ones and constructors count, inherited and deleted ones do not.
"""

import re

NO_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
    r"|(?<!\w)'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.S | re.M)
ANNOTATION = re.compile(r"\b(?:[A-Z][A-Z0-9]*_)+[A-Z0-9]+\b")
CLASS = re.compile(r"(?:^|\s)(?:class|struct|union)\s+(?:final\s+)?"
                   r"([\w:]+)\s*(?:final\s*)?(?::[^{}]*)?$")
METHOD = re.compile(r"[\w:~]+\s*$")
NO_METHOD = re.compile(r"\s*(?:friend|using|typedef|static_assert)\b")
ACCESS = re.compile(r"^(?:\s*(?:public|protected|private)\s*:)*")
INITIALIZED = re.compile(r"[:,]\s*[\w:]+\s*$")  # a member initialized by m{...}


def without_annotations(text):
    """Removes macros such as ABSL_GUARDED_BY(mu_)."""
    kept = []
    position = 0
    for match in ANNOTATION.finditer(text):
        if match.start() < position:
            continue
        kept.append(text[position:match.start()])
        position = match.end()
        if not re.match(r"\s*\(", text[position:]):
            continue
        depth = 0
        for index in range(text.index("(", position), len(text)):
            depth += {"(": 1, ")": -1}.get(text[index], 0)
            if depth == 0:
                position = index + 1
                break
    return "".join(kept) + text[position:]


def without_templates(text):
    text = re.sub(r"\boperator\s*(?:\(\s*\)|[^\s\w(]+)", "operator_", text)
    text = re.sub(r"\bdecltype\s*\([^()]*\)", "", text).replace("->", "  ")
    previous = None
    while previous != text:
        previous = text
        text = re.sub(r"<[^<>]*>", "", text)
    return text


def is_method(declaration):
    if "= delete" in declaration:
        return False
    text = ACCESS.sub("", without_templates(declaration))
    head, parenthesis, rest = text.partition("(")
    return bool(parenthesis and "=" not in head and METHOD.search(head)
                and not NO_METHOD.match(text)
                and not rest.lstrip().startswith("*"))  # a function pointer


class Scope:
    """A pair of braces: of a class, if it has a name."""

    def __init__(self, name, parentheses):
        self.name = name
        self.methods = 0
        self.declaration = ""
        self.parentheses = parentheses  # open before the brace

    def end_declaration(self):
        if self.name is not None and is_method(self.declaration):
            self.methods += 1
        self.declaration = ""


def class_name(declaration):
    if "(" in declaration or "enum" in declaration:
        return None
    found = CLASS.search(without_templates(declaration).rstrip())
    return found and found[1]


def methods_by_class(text):
    """Yields (name, number of methods) of each class in a file's text."""
    text = without_annotations(NO_CODE.sub(
        lambda match: '""' if match[0][0] in '"R' else " ", text))
    scopes = [Scope(None, 0)]
    parentheses = 0
    for token in re.findall(r"[{};()]|[^{};()]+", text):
        scope = scopes[-1]
        if token == "{":
            name = class_name(scope.declaration)
            if name:
                scope.declaration = ""
            scopes.append(Scope(name, parentheses))
            parentheses = 0
        elif token == "}" and len(scopes) > 1:
            ended = scopes.pop()
            parentheses = ended.parentheses
            scope = scopes[-1]
            if ended.name:
                yield ended.name, ended.methods
            elif parentheses or INITIALIZED.search(scope.declaration) or (
                    scope.name and not is_method(scope.declaration)):
                scope.declaration += "{}"
            else:
                scope.end_declaration()
        elif token == ";" and not parentheses:
            scope.end_declaration()
        else:
            parentheses += {"(": 1, ")": -1}.get(token, 0)
            scope.declaration += token
