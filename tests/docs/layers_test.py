#!/usr/bin/env python3
"""Checks the BUILD files and docs/architecture.md against tools/layers.bzl.

Usage: layers_test.py [ROOT]. Under Bazel the tree is found through this file,
which is a link into it: the test reads the working tree, so its result is
never taken from the cache (see BUILD).
"""

import ast
import builtins
import os
import pathlib
import re
import runpy
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def rules_of_layers(root):
    return runpy.run_path(str(root / "tools/layers.bzl"))


class Package:
    """The declarations of a BUILD file, which is run as Python."""

    def __init__(self, text, functions):
        self.libraries = []  # the arguments of each
        self.groups = {}     # name: packages
        self.default_visibility = ["//visibility:private"]
        tree = ast.parse(text)
        nodes = list(ast.walk(tree))
        # Makes loaded constants lists.
        scope = {node.id: [] for node in nodes if isinstance(node, ast.Name)
                 and not hasattr(builtins, node.id)}
        scope.update({node.func.id: self.rule(node.func.id) for node in nodes
                      if isinstance(node, ast.Call)
                      and isinstance(node.func, ast.Name)})
        scope.update(functions, package=self.package,
                     package_group=self.package_group)
        exec(compile(tree, "BUILD", "exec"), scope)

    def rule(self, kind):
        def declare(*args, **kwargs):
            if kind.endswith("_library") or kind == "cc_grpc_proto":
                self.libraries.append(kwargs)
            return []  # the result of glob()
        return declare

    def package(self, default_visibility=None, **_):
        self.default_visibility = default_visibility or self.default_visibility

    def package_group(self, name, packages):
        self.groups[":" + name] = packages

    def visibility(self):
        """All entries of the libraries together."""
        return {entry for library in self.libraries
                for entry in library.get("visibility",
                                         self.default_visibility)}


def layers_of(entry, groups, layers):
    """The layers that an entry of a visibility or of a group names."""
    if entry == "//visibility:private":
        return set()
    if entry == "//visibility:public":
        return set(layers)
    if entry in groups:
        return {layer for pattern in groups[entry]
                for layer in layers_of(pattern, groups, layers)}
    match = re.fullmatch(r"//([\w/]*?)(?::__pkg__|(:__subpackages__|/\.\.\.))?",
                         entry)
    if not match:
        raise ValueError(f"unknown visibility {entry}")
    return {layer for layer in layers if layer == match[1]
            or match[2] and layer.startswith(match[1] + "/")}


def too_visible(layer, package, groups, rules):
    """Returns the layers that may use `layer` in BUILD files but may not
    include it."""
    included = {user for user, paths in rules["LAYERS"].items()
                for path in paths if rules["layer_of"](path) == layer}
    return sorted({user for entry in package.visibility()
                   for user in layers_of(entry, groups, rules["LAYERS"])}
                  - included - {layer})


# A name in the drawing.
DRAWN = re.compile(r"(?<![\w/])(?:transport/[\w.]+|tensor_service|ps|examples|"
                   r"bench|python|frameworks|cli|penstock|preload|"
                   r"collectives)(?![\w/])")
FACE = "transport/penstock.cc"  # represents the folder "transport"


def section(text):
    """"Layers" of docs/architecture.md: its drawing and its table, as lines."""
    text = re.search(r"^## Layers\n(.*?)^## ", text,
                     re.DOTALL | re.MULTILINE)[1]
    drawing = re.search(r"^```\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[1]
    return (drawing.splitlines(),
            [line for line in text.splitlines() if line.startswith("| `")])


def drawn_as(layer):
    """Returns the name of `layer` in the drawing. For a layer inside a folder
    of transport/, also returns its name in the folder's line."""
    if layer == "transport":
        return FACE, ""
    parts = layer.split("/")
    if parts[0] != "transport":
        return parts[0], ""
    return "/".join(parts[:2]), "".join(f" {part}/" for part in parts[2:])


def place(layer, drawing):
    """Returns the line that draws `layer`, counted from above. None if there
    is none."""
    name, inner = drawn_as(layer)
    for number, line in enumerate(drawing):
        if name in DRAWN.findall(line) and inner in line:
            return number
    return None


def misdrawn(drawing, rules):
    """Returns layers that are not drawn, or not drawn above all layers that
    they may include."""
    for layer, paths in rules["LAYERS"].items():
        here = place(layer, drawing)
        if here is None:
            yield layer
        for path in paths:
            below = rules["layer_of"](path)
            there = place(below, drawing)
            if None in (here, there):
                continue
            # Accepts two folders on the same line: one folder is in the other,
            # both are in a folder that is drawn as one, or the line names the
            # lower one of a folder's two parts first.
            line, parts = drawing[here], (drawn_as(below), drawn_as(layer))
            is_inner = (layer.startswith(below + "/")
                        or below.startswith(layer + "/")
                        or parts[0] == parts[1]
                        or parts[0][0] == parts[1][0]
                        and line.find(parts[0][1]) < line.find(parts[1][1]))
            if here > there or here == there and not is_inner:
                yield f"{layer} is not above {below}"


def drawn_for_nothing(drawing, layers):
    names = {name for line in drawing for name in DRAWN.findall(line)}
    return sorted(name for name in names - {FACE}
                  if not any(layer == name or layer.startswith(name + "/")
                             for layer in layers))


def row(layer, paths):
    """Returns the table's name for `layer`, and the layers that it may
    include."""
    short = [FACE if path == "transport" else path for path in paths]
    short = ", ".join(path.replace("transport/", "", 1) for path in short)
    return f"`{FACE if layer == 'transport' else layer}`", short or "nothing"


class LayersTest(unittest.TestCase):

    def test_each_includes_only_what_stands_above_it_in_the_list(self):
        rules, seen = rules_of_layers(ROOT), set()
        for layer, paths in rules["LAYERS"].items():
            for path in paths:
                self.assertIn(rules["layer_of"](path), seen,
                              f"{layer} names {path}")
            seen.add(layer)

    def test_each_folder_and_file_that_is_named_is_there(self):
        layers = rules_of_layers(ROOT)["LAYERS"]
        self.assertEqual([path for paths in layers.values()
                          for path in [*layers, *paths]
                          if not (ROOT / path).exists()], [])


class VisibilityTest(unittest.TestCase):
    """Checks that Bazel hides a library from each layer that may not include
    it. A missing permission fails the build."""

    def test_no_library_is_visible_to_a_layer_that_may_not_include_it(self):
        rules = rules_of_layers(ROOT)
        functions = {"users": rules["users"]}
        groups = Package((ROOT / "BUILD").read_text(), functions).groups
        groups = {"//" + name: packages for name, packages in groups.items()}
        for layer in rules["LAYERS"]:
            with self.subTest(layer=layer):
                package = Package((ROOT / layer / "BUILD").read_text(),
                                  functions)
                self.assertEqual(too_visible(layer, package,
                                             {**groups, **package.groups},
                                             rules), self.behind(layer))

    def behind(self, layer):
        """Returns the layers that a library may use without including them. A
        library of public headers is linked from its implementation, and
        includes nothing of it."""
        folder = layer.rpartition("/")[0]
        if folder == "tensor_service" and layer != "tensor_service/cuda":
            return [folder]
        return ["penstock"] if layer == "transport" else []


class ArchitectureTest(unittest.TestCase):

    def setUp(self):
        self.rules = rules_of_layers(ROOT)
        self.drawing, self.table = section(
            (ROOT / "docs/architecture.md").read_text())

    def test_each_layer_is_drawn_above_what_it_may_include(self):
        self.assertEqual(list(misdrawn(self.drawing, self.rules)), [])

    def test_nothing_else_is_drawn(self):
        self.assertEqual(
            drawn_for_nothing(self.drawing, self.rules["LAYERS"]), [])

    def test_each_layer_has_its_row_with_what_it_may_include(self):
        cells = [[cell.strip() for cell in line.strip("|").split("|")]
                 for line in self.table]
        self.assertEqual(
            [(name, included) for name, _, included, *_ in cells],
            [row(layer, paths)
             for layer, paths in self.rules["LAYERS"].items()
             if not layer.startswith(("examples/", "bench/"))])


class CheckerTest(unittest.TestCase):
    """Tests the checks themselves."""

    def too_visible(self, build):
        layers = {"a": [], "a/b": ["a"], "c": ["a/b/x.h"], "d": []}
        rules = {"LAYERS": layers, "users": lambda layer: ["//c:__pkg__"],
                 "layer_of": lambda path: path.removesuffix("/x.h")}
        package = Package(build, {"users": rules["users"]})
        return too_visible("a/b", package, package.groups, rules)

    def test_visibility_of_each_kind_is_understood(self):
        for visibility, found in [
                ("['//visibility:private']", []),
                ("['//visibility:public']", ["a", "d"]),
                ("users('a/b')", []),
                ("users('a/b') + ['//d:__pkg__']", ["d"]),
                ("['//a:__subpackages__', '//tests/a:__pkg__']", ["a"]),
                ("[':some']", ["d"])]:
            group = "package_group(name = 'some', packages = ['//d/...'])\n"
            with self.subTest(visibility=visibility):
                self.assertEqual(found, self.too_visible(
                    f"{group}cc_library(name = 'x', visibility = {visibility})"
                ))
                self.assertEqual(found, self.too_visible(
                    f"{group}package(default_visibility = {visibility})\n"
                    "cc_library(name = 'x')"))

    def test_a_program_may_be_visible_to_all(self):
        self.assertEqual([], self.too_visible(
            "cc_binary(name = 'x', visibility = ['//visibility:public'])"))

    def misdrawn(self, *drawing):
        return list(misdrawn(drawing, {
            "LAYERS": {"transport/a": [], "transport/a/b": ["transport/a"],
                       "transport": ["transport/a/b"],
                       "bench/c": ["transport"]},
            "layer_of": lambda path: path}))

    def test_what_is_drawn_in_the_wrong_order_is_found(self):
        self.assertEqual([], self.misdrawn(
            " bench", FACE + " x", "transport/a  x  <-  b/"))
        self.assertEqual(["transport/a/b"], self.misdrawn(
            " bench", FACE, "transport/a"))
        self.assertEqual(["bench/c"], self.misdrawn(FACE, "transport/a b/"))
        self.assertEqual(["transport is not above transport/a/b"],
                         self.misdrawn("bench", "transport/a b/", FACE))
        self.assertEqual(["bench/c is not above transport"],
                         self.misdrawn(f"bench {FACE}", "transport/a b/"))

    def test_what_is_drawn_for_nothing_is_found(self):
        self.assertEqual(["transport/d"], drawn_for_nothing(
            [" bench   ps_x", "transport/d  a", FACE], ["bench/c"]))


if __name__ == "__main__":
    if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]):
        ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
