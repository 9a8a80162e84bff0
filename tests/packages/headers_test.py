#!/usr/bin/python3 -B
"""Tests that the shared library exports what the public headers declare, and
nothing else.

The test makes a program that uses each function of the headers, and compares
the symbols that the program needs with those that the library exports.
"""

import collections
import os
import pathlib
import subprocess
import tempfile
import unittest

from exports_test import demangled, named_by_map, symbols
from header_functions import Function, functions_of

HEADERS = sorted(pathlib.Path("penstock").glob("*.h"))
LIBRARY = "penstock/libpenstock.so.0"
# The function that the preloaded stub calls, as the version map says.
PRIVATE = {"penstock_preload_1"}


def program(functions):
    """Returns a program that refers to all of the functions."""
    count = collections.Counter((f.scope, f.name) for f in functions)
    lines = [f'#include "{header}"' for header in HEADERS]
    lines.append("namespace penstock {")
    for number, each in enumerate(functions):
        if each.name.startswith("~"):
            lines.append(f"void Use{number}({each.scope}* object)"
                         f" {{ object->{each.name}(); }}")
            continue
        value = f"&{each.scope}::{each.name}"
        if count[each.scope, each.name] > 1:
            kind = f"{each.scope}::*" if each.is_member else "*"
            const = " const" if each.is_const else ""
            value = (f"static_cast<{each.returns} ({kind})({each.parameters})"
                     f"{const}>({value})")
            if each.in_class:
                # Puts the types into the class's scope, because parameters may
                # name them as the class does.
                lines.append(f"struct Scope{number} : {each.scope}"
                             f" {{ static auto Value() {{ return {value}; }} }};")
                value = f"Scope{number}::Value()"
        lines.append(f"auto used{number} = {value};")
    return "\n".join(lines + ["}", "int main() {}", ""])


class HeadersTest(unittest.TestCase):

    def test_each_function_is_exported_and_nothing_else(self):
        self.assertGreater(len(HEADERS), 4)
        functions = [function for header in HEADERS for function in
                     functions_of(header.read_text(encoding="utf-8"))]
        with tempfile.TemporaryDirectory() as folder:
            source, object_, linked = (os.path.join(folder, name) for name in
                                       ("main.cc", "main.o", "main"))
            pathlib.Path(source).write_text(program(functions),
                                            encoding="utf-8")
            for command in (
                    ["g++", "-std=c++17", "-I.", "-c", source, "-o", object_],
                    ["g++", object_, LIBRARY, "-lgrpc++", "-lgrpc", "-lgpr",
                     "-o", linked], [linked]):
                done = subprocess.run(
                    command, text=True, capture_output=True,
                    env={**os.environ, "LD_LIBRARY_PATH": "penstock"})
                self.assertEqual(done.returncode, 0, done.stderr)
            wanted = subprocess.run(["nm", "-u", object_], text=True,
                                    capture_output=True, check=True).stdout
        used = {name for name in demangled(
            [line.split()[1] for line in wanted.splitlines()])
                if name.startswith("penstock::")}
        # Several constructors or destructors may have the same name.
        self.assertEqual(len(used), len(functions), used)
        exported = {name for name, kind in symbols("-D", LIBRARY)
                    if kind not in "Ab"}
        self.assertEqual(used, {name for name in demangled(sorted(exported))
                                if "penstock::" in name.partition("<")[0]})
        self.assertEqual(used, set(demangled(sorted(named_by_map()))))
        self.assertEqual(PRIVATE, {name for name in exported
                                   if not name.startswith("_Z")})


class ScannerTest(unittest.TestCase):

    def test_it_finds_what_a_library_has_to_define(self):
        found = functions_of("""
            #define NOTHING void Macro();  // void Comment();
            namespace a { class Forward; namespace b {
            enum class E : int { kOne };
            int Free(const E& e = {}, std::map<int, E> m = Map(1, 2));
            inline int Inline() { return 1; }
            std::ostream& operator<<(std::ostream& o, E e);
            [[nodiscard]] int Attributed();
            struct S : public T { S() = default; int x() const; int y_ = 0;
                int z() const { return 0; } private: void Hidden(); };
            class C final { void Hidden(); friend void F();
                class In { public: void Hidden(); };
             public: static C* Make(); virtual ~C(); virtual void P() = 0; };
            }}""")
        self.assertEqual(found, [
            Function("a::b", False, "Free", "int",
                     "const E& e, std::map<int, E> m", False, False),
            Function("a::b", False, "operator<<", "std::ostream&",
                     "std::ostream& o, E e", False, False),
            Function("a::b", False, "Attributed", "int", "", False, False),
            Function("a::b::S", True, "x", "int", "", True, True),
            Function("a::b::C", True, "Make", "C*", "", False, False),
            Function("a::b::C", True, "~C", "", "", True, False)])

    def test_what_it_does_not_understand_is_an_error(self):
        for text in ("MACRO(x);", "template <typename T> void F(T t);",
                     "extern void F();", "struct S { explicit S(int x); };",
                     "void F() noexcept;", "std::function<void()> f;",
                     "constexpr int kNumber = F();", "int F(", "struct S {",
                     "template <typename T> class C { };"):
            with self.subTest(text), self.assertRaises(ValueError):
                functions_of(text)


if __name__ == "__main__":
    unittest.main()
