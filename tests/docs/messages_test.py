#!/usr/bin/env python3
"""Compares docs/operations/messages.md with the sources: each quoted message
must exist, and each message that the sources log, or give as a reason, must be
quoted. Also compares docs/faq.md with the sources."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DOCUMENT = ROOT / "docs/operations/messages.md"
FAQ = ROOT / "docs/faq.md"
FOLDERS = ("transport", "preload", "ps", "frameworks/tensorflow")
# Python code that gives reasons to the stub.
PYTHON = ROOT / "python/penstock/grpc/_run.py"
# The folder of the doctor, whose messages the FAQ quotes as well.
DOCTOR = "cli/doctor"
# The files whose statuses reach users in full.
SAID_IN_FULL = ("transport/settings/settings.cc",
                "transport/settings/row.h",
                "transport/connection/session_setup.cc",
                "transport/paths/side_paths.cc",
                "transport/base/output_file.cc",
                "transport/monitoring/http_port.cc",
                "transport/base/descriptors.cc",
                "transport/fabric/verbs/cm_channel.cc",
                "transport/fabric/verbs/device.cc",
                "transport/fabric/verbs/fabric.cc",
                "transport/fabric/verbs/library.cc",
                "transport/fabric/verbs/locked_memory.cc",
                "transport/fabric/verbs/status.cc",
                "transport/fabric/verbs/supervisor.cc",
                "transport/fabric/shm/address.cc",
                "transport/fabric/shm/connector.cc",
                "transport/fabric/shm/peer_user.cc",
                "transport/fabric/shm/segment.cc",
                "transport/fabric/shm/user_arenas.cc",
                "ps/tls.cc",
                "preload/python.c",
                "preload/check_program.cc")
# The number of calls, by file, that log only text from elsewhere. The table in
# the document has the other log lines of these files.
WITHOUT_WORDS = {
    "transport/event_engine/engine.cc": 1,  # a refusal of require
    "transport/event_engine/sockets/socket_listener.cc": 1,  # the system's error
    "transport/grpc/handshake/server_negotiator.cc": 2,
    "transport/usable_settings.cc": 1,
    "transport/base/log.cc": 2,  # the definitions of the functions
    "transport/base/limited_log.cc": 1,
    "frameworks/tensorflow/server.cc": 1,
    "ps/announce.cc": 1,
    "ps/register.cc": 1,
    "ps/server/checkpoint_restore.cc": 1,
    "ps/server/checkpoint_commits.cc": 1,
}

STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
# A string that continues on the next line, or in the next argument of StrCat().
SEAM = re.compile(r'"\s*(?:\n|,)\s*"')
CALL = re.compile(r"(?:\b(?:LogWarning|LogError|WarnOfStranger)|\.Warning)\(")
STATUS = re.compile(r"\b(?:\w+Error|Cannot|Say|refused)\(")
# A message that a function of the stub, which is in C, returns as text.
TEXT = re.compile(r"\breturn (?=\")")
# The shortest text that counts. A shorter text has no words.
SHORTEST = 6


def joined(path):
    """Returns the text of a source without comments. Joins adjacent
    strings."""
    text = re.sub(r"^\s*//.*$", "", path.read_text(encoding="utf-8"),
                  flags=re.MULTILINE)
    return SEAM.sub("", text)


def sources(folders=FOLDERS):
    return [path for folder in folders
            for path in sorted((ROOT / folder).glob("**/*"))
            if path.suffix in (".c", ".cc", ".h")] + [PYTHON]


def argument(text, begin):
    """Returns the arguments of a call: the text between its parentheses."""
    depth, at = 1, begin
    while depth > 0 and at < len(text):
        string = STRING.match(text, at)
        if string:
            at = string.end()
            continue
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return text[begin:at - 1]


def words(text, call):
    """Yields the strings of each call that `call` matches. Yields an empty
    list for a call without words."""
    for found in call.finditer(text):
        strings = STRING.findall(argument(text, found.end()))
        yield strings if len("".join(strings)) >= SHORTEST else []


def quoted():
    """Returns the messages: the first columns of the tables."""
    return re.findall(r"^\| `(.+?)` \|", DOCUMENT.read_text(encoding="utf-8"),
                      re.MULTILINE)


# A command or a setting begins with the name of a program or variable.
COMMAND = re.compile(r"(penstock|rdma|kill|tools/\S+) |PENSTOCK_\w+=")


def messages_of(text):
    """Returns the quoted texts of a document that are sentences, and no
    commands."""
    return [quote for quote in re.findall(r"`([^`\n]+)`", text)
            if " " in quote and not COMMAND.match(quote)]


def pieces(message):
    """Returns the parts of a message that do not vary."""
    return [piece.strip() for piece in message.split("...") if piece.strip()]


def begins(some, whole):
    """Returns True if a message begins with another message. The other message
    may end within a piece."""
    return (0 < len(some) <= len(whole)
            and some[:-1] == whole[:len(some) - 1]
            and whole[len(some) - 1].startswith(some[-1]))


def plain(string):
    return re.sub(r"%[.*\d]*[sdu]", "...", string).strip()


class MessagesTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.texts = {path.relative_to(ROOT).as_posix(): joined(path)
                     for path in sources()}
        cls.strings = "\n".join(
            plain(string) for text in cls.texts.values()
            for string in STRING.findall(text))

    def is_quoted(self, strings):
        """Returns True if the table has the message of these strings, or its
        beginning."""
        said = pieces("...".join(map(plain, strings)))
        return any(begins(pieces(message), said) for message in quoted())

    maxDiff = None

    def test_there_are_messages(self):
        self.assertGreater(len(quoted()), 80)

    def test_every_quoted_message_is_in_the_sources(self):
        self.assertEqual([piece for message in quoted()
                          for piece in pieces(message)
                          if piece not in self.strings], [])

    def test_every_message_of_the_faq_is_in_the_sources(self):
        messages = messages_of(FAQ.read_text(encoding="utf-8"))
        self.assertGreater(len(messages), 8)
        doctor = "\n".join(joined(path) for path in sources([DOCTOR]))
        self.assertEqual([piece for message in messages
                          for piece in pieces(message)
                          if piece not in self.strings + doctor], [])

    def test_every_warning_and_error_of_the_log_is_quoted(self):
        missing, silent = [], {}
        for file, text in self.texts.items():
            for strings in words(text, CALL):
                if not strings:
                    silent[file] = silent.get(file, 0) + 1
                elif not self.is_quoted(strings):
                    missing.append((file, strings))
        self.assertEqual(missing, [])
        self.assertEqual(
            {file: number for file, number in silent.items()
             if not file.endswith(".h")}, WITHOUT_WORDS)

    def test_every_reason_of_these_files_is_quoted(self):
        missing = []
        for file in SAID_IN_FULL:
            call = TEXT if file.endswith(".c") else STATUS
            found = [strings for strings in words(self.texts[file], call)
                     if strings]
            self.assertTrue(found, file)
            missing += [(file, strings) for strings in found
                        if not self.is_quoted(strings)]
        self.assertEqual(missing, [])


class CheckerTest(unittest.TestCase):

    def test_strings_in_two_pieces_are_one(self):
        self.assertEqual(SEAM.sub("", '"one "\n   "two"'), '"one two"')

    def test_a_command_is_no_message(self):
        self.assertEqual(messages_of("`kill -9 x`, `A=b`, `no device here`\n"
                                     "`PENSTOCK_LOG=debug x`"),
                         ["no device here"])

    def test_an_argument_ends_at_its_own_parenthesis(self):
        self.assertEqual(argument('f("a)", g(x)) + h()', 2), '"a)", g(x)')

    def test_what_varies_is_left_out(self):
        self.assertEqual(pieces("worker ... is lost: ...; continuing with ..."),
                         ["worker", "is lost:", "; continuing with"])

    def test_a_message_is_known_by_its_beginning(self):
        said = pieces("worker ... is lost: ...; going on")
        self.assertTrue(begins(pieces("worker ... is lo"), said))
        self.assertFalse(begins(pieces("worker ... is found"), said))
        self.assertFalse(begins(pieces("work ... is lost:"), said))


if __name__ == "__main__":
    unittest.main()
