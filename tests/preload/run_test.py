#!/usr/bin/python3 -B
"""Tests a program that is run with Penstock's library preloaded, by
preload/launch.h."""

import os
import signal
import tempfile
import unittest

from child import LIBRARY, PYTHON, STUB, Child, run

HERE = os.path.abspath("tests/preload")
RUN = (f"{HERE}/run", STUB, LIBRARY)
SERVER, CLIENT = (os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
                  for name in ("echo_server.py", "echo_client.py"))


class RunTest(unittest.TestCase):

    def run_it(self, *command, **settings):
        return run(*RUN, *command, preload=None, **settings)

    def test_a_compiled_program(self):
        ended = self.run_it(f"{HERE}/core", "threads")
        self.assertEqual(0, ended.code, ended)
        self.assertIn("to", ended.sides_over_shm())

    def test_python(self):
        with Child(*RUN, PYTHON, SERVER, "aio", preload=None) as server:
            ended = self.run_it(PYTHON, CLIENT, "sync", server.address, "sizes")
            self.assertEqual(0, ended.code, ended)
            self.assertEqual({"to"}, ended.sides_over_shm())
            self.assertEqual({"from"}, server.end().sides_over_shm())

    def test_the_exit_code_is_the_programs(self):
        self.assertEqual(7, self.run_it("sh", "-c", "exit 7").code)
        self.assertEqual(-signal.SIGTERM,
                         self.run_it("sh", "-c", "kill -TERM $$").code)

    def test_the_exit_codes_of_a_shell(self):
        self.assertEqual(127, self.run_it("no-such-program").code)
        self.assertEqual(126, self.run_it("/etc/passwd").code)
        self.assertEqual(126, self.run_it("/tmp").code)
        with tempfile.NamedTemporaryFile("w", delete=False) as script:
            script.write("#!/is/nowhere\n")
        self.addCleanup(os.remove, script.name)
        os.chmod(script.name, 0o755)
        self.assertEqual(127, self.run_it(script.name).code)
        with open(script.name, "w", encoding="utf-8") as file:
            file.write("exit 9\n")  # as shells and execvp() do
        self.assertEqual(9, self.run_it(script.name).code)

    def test_what_cannot_be_carried_says_so_in_a_line_and_runs(self):
        ended = self.run_it(f"{HERE}/static")
        self.assertEqual(0, ended.code)
        self.assertRegex(ended.log, r"\A\S+/static is statically linked\n\Z")
        ended = self.run_it(f"{HERE}/other")
        self.assertEqual(0, ended.code)
        self.assertIn("server_create", ended.said)
        self.assertRegex(ended.log, r"\A.*libgrpc\.so\.37.*\n\Z")

    def test_a_program_for_another_processor_is_not_given_to_a_shell(self):
        with open(f"{HERE}/core", "rb") as file:
            foreign = bytearray(file.read())
        foreign[18] = 22  # e_machine: IBM S/390
        with tempfile.NamedTemporaryFile(delete=False) as program:
            program.write(foreign)
        self.addCleanup(os.remove, program.name)
        os.chmod(program.name, 0o755)
        ended = self.run_it(program.name)
        self.assertEqual((126, ""), (ended.code, ended.said), ended)
        self.assertIn("another processor", ended.log)
        self.assertNotRegex(ended.log, "sh: |yntax|not found")

    def test_a_program_with_a_sanitizer_runs_as_it_is(self):
        for program, name in (("asan", "AddressSanitizer"),
                              ("tsan", "ThreadSanitizer")):
            ended = self.run_it(f"{HERE}/{program}")
            self.assertEqual(0, ended.code, ended)
            self.assertRegex(ended.log,
                             rf"\A\S+ is built with {name}, .*\n\Z")

    def test_a_program_with_a_sanitizer_beneath_one_without(self):
        """Tests a sanitizer below a program without one. For example, `make
        check` runs such programs."""
        for program in "asan", "tsan":
            ended = self.run_it("sh", "-c", f"{HERE}/{program}; exit $?")
            self.assertEqual((0, "", ""), (ended.code, ended.said, ended.log))

    def test_arguments_and_environment_arrive_as_they_are(self):
        odd = ["", " ", "a b", "*", "--", "é\n"]
        ended = self.run_it("printf", "<%s>", *odd)
        self.assertEqual("".join(f"<{text}>" for text in odd), ended.said)
        ended = self.run_it("sh", "-c", 'echo "$X"', X="a=b=c ")
        self.assertEqual("a=b=c \n", ended.said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
