"""Finds sentences that break the rules of plain English.

The pure part of tools/check_english: yields the offences in the text of a file.
Knows the comments of C++, CUDA, C, protocol buffers, Python,
Starlark and shell, and the paragraphs of Markdown.
"""

import re
from typing import NamedTuple

LONGEST = 25  # words of a sentence in a document


class Offence(NamedTuple):
    line: int
    rule: str  # "opening", "word" or "long"
    text: str


class Paragraph(NamedTuple):
    """Lines of prose without their comment marks, each with its number."""
    lines: list


OPENING = re.compile(
    r"[\"'(\[*_]*(what|who|whether|which|that|those|its?|so)"
    r"(?:['’]\w+)?(?![-\w(/=]|\.\w)", re.IGNORECASE)

# Words that slow a reader down. Each pattern is narrow, so that an ordinary
# use of the same letters passes.
WORDS = re.compile(
    r"\b(?:mend(?:s|ed|ing)?|dear(?:er|est|ly)?|by turns|beside"
    r"|such as (?:do|does|are|is|have|has|had|was|were|will|would|can|cannot"
    r"|could|need|needs|want|wants|may|might|must|come|comes|go|goes)"
    r"|be (?:it|they) (?:a|an|the|for|in|by|of|from|to|as|with)"
    r"|without (?:more|further) ado|one behind the other|ha(?:s|ve|d) it that"
    r"|stands?(?![- ](?:for|in|out|up|alone)\b)|nought|thereof|therein"
    r"|thereby|whence|lest|ere|hither|thither|heed(?:s|ed)?|for want of"
    r"|of an age|at a stroke|makes shift|no longer than need be)\b",
    re.IGNORECASE)

# A period, question mark or exclamation mark ends a sentence where the next
# word may begin one. A lower-case letter continues: "e.g. this".
BOUNDARY = re.compile(
    r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)[\"')\]*_]*\s+"
    r"(?=[\"'(\[*_`<]*[A-Z0-9`<])")
LIST_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")

C_TOKEN = re.compile(
    r'R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.[^'\n]{0,9}|[^'\\\n])'"
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)", re.DOTALL)
PYTHON_TOKEN = re.compile(
    r"(?:\b[rRbBuUfF]{1,2})?(?P<long>\"\"\"|''')(?P<body>(?:\\.|[^\\])*?)(?P=long)"
    r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
    r"|(?P<comment>#[^\n]*)", re.DOTALL)
SHELL_COMMENT = re.compile(r"(?:^|(?<=\s))#(?!!)[^\n]*", re.MULTILINE)
HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
MACHINE = re.compile(
    r"\W*(?:NOLINT|clang-format|shellcheck|pylint:|noqa|type:|mypy:|IWYU|"
    r"buildifier:|!/)")


class Piece(NamedTuple):
    """One line of a comment, with its place."""
    line: int
    column: int
    alone: bool  # no code before it
    text: str


def position(text, at):
    """Returns the line from 1, the column, and True if only spaces precede."""
    start = text.rfind("\n", 0, at) + 1
    return text.count("\n", 0, at) + 1, at - start, \
        not text[start:at].strip()


def strip_mark(line):
    return re.sub(r"^(?://[/!]?<?|#+:?)", "", line)


def block_lines(text):
    """Returns the lines of a /* comment */ or docstring without its marks."""
    text = re.sub(r"^/\*+|\*+/$", "", text)
    return [re.sub(r"^\s*\*(?:\s|$)", "", line) for line in text.split("\n")]


def c_pieces(text):
    for found in C_TOKEN.finditer(text):
        comment = found["comment"]
        if comment is None:
            continue
        line, column, alone = position(text, found.start())
        if comment.startswith("//"):
            yield Piece(line, column, alone, strip_mark(comment))
            continue
        for number, body in enumerate(block_lines(comment), start=line):
            yield Piece(number, column, alone or number > line, body)


def is_docstring(text, at):
    """Returns true for a docstring, and false for a text that is passed or
    assigned."""
    before = text[:at].rstrip()
    return not before or before[-1] not in "(,=+\\[{"


def python_pieces(text):
    for found in PYTHON_TOKEN.finditer(text):
        line, column, alone = position(text, found.start())
        if found["comment"] is not None:
            yield Piece(line, column, alone, strip_mark(found["comment"]))
        elif found["long"] and alone and is_docstring(text, found.start()):
            for number, body in enumerate(found["body"].split("\n"),
                                          start=line):
                # Yields the line without a column, so that no comment continues
                # it.
                yield Piece(number, -1, True, body)


def without_heredocs(text):
    """Returns a script with its here-documents blanked."""
    end, lines = None, []
    for line in text.split("\n"):
        if end is None:
            lines.append(line)
            found = HEREDOC.search(line)
            end = found[2] if found and "<<<" not in line else None
        else:
            lines.append("")
            end = None if line.strip() == end else end
    return "\n".join(lines)


def shell_pieces(text):
    text = without_heredocs(text)
    for found in SHELL_COMMENT.finditer(text):
        line, column, alone = position(text, found.start())
        yield Piece(line, column, alone, strip_mark(found[0]))


def joined(pieces):
    """Yields paragraphs: pieces of successive lines in one column.

    A line that is empty, made of punctuation, or read by a machine ends one.
    A list item begins one.
    """
    lines, last = [], None
    for piece in pieces:
        words = re.search(r"\w", piece.text) and not MACHINE.match(piece.text)
        follows = (last and piece.alone and piece.line == last.line + 1
                   and piece.column == last.column)
        if lines and not (follows and words and not
                          LIST_ITEM.match(piece.text)):
            yield Paragraph(lines)
            lines = []
        if words:
            lines = lines + [(piece.line, piece.text.strip())]
        last = piece
    if lines:
        yield Paragraph(lines)


FENCE = re.compile(r"\s*(?:```|~~~)")
RULER = re.compile(r"\s*(?:[-=*_|: ]+$|<[!/a-z])")


def markdown_paragraphs(text):
    """Yields the paragraphs, list items, headings and cells of a document."""
    lines, fenced = [], False
    for number, line in enumerate(text.split("\n"), start=1):
        fence = bool(FENCE.match(line))
        fenced = fenced != fence
        alone = line.lstrip().startswith(("#", "|"))
        if lines and (fence or alone or RULER.match(line)
                      or not line.strip() or LIST_ITEM.match(line)):
            yield Paragraph(lines)
            lines = []
        if fence or fenced or RULER.match(line) or not line.strip():
            continue
        if alone:
            for cell in line.strip().strip("#|").split("|"):
                yield Paragraph([(number, cell.strip())])
        else:
            lines = lines + [(number, line.strip())]
    if lines:
        yield Paragraph(lines)


def plain(text):
    """Replaces code by one word, and a link by its text."""
    text = re.sub(r"`[^`]*`", "CODE", text)
    return re.sub(r"\]\([^()]*(?:\([^()]*\)[^()]*)*\)", "]", text)


def sentences(paragraph):
    """Returns (line, sentence) for each sentence of a paragraph."""
    text, starts = "", []
    for number, line in paragraph.lines:
        starts.append((len(text), number))
        text += line + " "
    mark = LIST_ITEM.match(text)
    at = mark.end() if mark else 0
    found = []
    for end in [end.end() for end in BOUNDARY.finditer(text)] + [len(text)]:
        line = max(number for start, number in starts if start <= at)
        if text[at:end].strip():
            found.append((line, text[at:end].strip()))
        at = max(at, end)
    return found


def word_count(sentence):
    return len(re.findall(r"[^\s]*\w[^\s]*", plain(sentence)))


def used_words(sentence):
    """Returns the words of a sentence that have everyday substitutes."""
    prose = re.sub(r"`[^`]*`|\"[^\"]*\"", " ", sentence)
    return [found[0] for found in WORDS.finditer(prose)]


PIECES = {
    **dict.fromkeys(("h", "c", "cc", "cu", "cuh", "proto"), c_pieces),
    **dict.fromkeys(("py", "bzl", "BUILD", "WORKSPACE"), python_pieces),
    **dict.fromkeys(("sh", "bash"), shell_pieces),
}
SHEBANG = re.compile(r"#!.*\b(python3?|bash|sh)\b")


def language(name, first_line):
    """Returns a key of PIECES, "md", or None for a file of another kind."""
    kind = name.rsplit("/", 1)[-1].rsplit(".", 1)[-1]
    if kind in PIECES or kind == "md":
        return kind
    found = SHEBANG.match(first_line)
    return {"p": "py", "b": "sh", "s": "sh"}[found[1][0]] if found else None


def paragraphs(kind, text):
    """Yields the paragraphs of a document, or of the comments of a source."""
    return (markdown_paragraphs(text) if kind == "md"
            else joined(PIECES[kind](text)))


def offences(kind, text):
    """Yields each offence in the text of a file, from the top down."""
    document = kind == "md"
    for paragraph in paragraphs(kind, text):
        for line, sentence in sentences(paragraph):
            if not document and OPENING.match(sentence):
                yield Offence(line, "opening", sentence)
            if document and word_count(sentence) > LONGEST:
                yield Offence(line, "long", sentence)
            for word in used_words(sentence):
                yield Offence(line, "word", f"{word}: {sentence}")
