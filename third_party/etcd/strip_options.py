#!/usr/bin/python3 -B
"""Removes what etcd's .proto files need only for Go and for its HTTP gateway.

Usage: strip_options.py FOLDER FILE...

Writes each FILE to FOLDER, without its options in parentheses, such as
(gogoproto.nullable) and (google.api.http), and without the imports that define
these options. The remaining imports name FOLDER's files. No option that is
removed changes a byte of a message.
"""

import os
import re
import sys

# An import of a file that stays: one that another FILE is.
IMPORT = re.compile(r'^import "([^"]+)";\n', re.M)
# An option in a list of options: "[(gogoproto.nullable) = false]".
IN_BRACKETS = re.compile(r"\s*\[\s*\([^\]]*\]")
STATEMENT = re.compile(r"^[ \t]*option\s*\(", re.M)


def statement_end(text, begin):
    """Returns the end of a statement, whose braces may be nested."""
    depth = 0
    for match in re.compile(r'"[^"]*"|[{};]').finditer(text, begin):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if match[0] == ";" and depth == 0:
            # Takes an empty statement after the value, too.
            return re.compile(r"[ \t]*\n?").match(text, match.end()).end()
    raise ValueError("an option does not end")


def strip(text, prefix, names):
    """Returns a .proto file without options, whose imports begin with prefix."""
    while (match := STATEMENT.search(text)):
        text = text[:match.start()] + text[statement_end(text, match.start()):]
    text = IN_BRACKETS.sub("", text)

    def local(match):
        name = os.path.basename(match[1])
        return f'import "{prefix}/{name}";\n' if name in names else ""
    return IMPORT.sub(local, text)


def main(folder, *paths):
    names = {os.path.basename(path) for path in paths}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = strip(file.read(), "third_party/etcd", names)
        with open(os.path.join(folder, os.path.basename(path)), "w",
                  encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
