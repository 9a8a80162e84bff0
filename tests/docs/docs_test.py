#!/usr/bin/env python3
"""Checks the documents against the tree: settings, links, golden bytes.

Usage: docs_test.py [ROOT]. Under Bazel the tree is found through this file,
which is a link into it: the test reads the working tree, so its result is
never taken from the cache (see BUILD).
"""

import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

SETTING = re.compile(r'"(PENSTOCK_\w+)"')
VARIABLE = re.compile(r"\bPENSTOCK_[A-Z][A-Z0-9_]*[A-Z0-9]\b")
# Variables of the tools, the TensorFlow plugin, the stub, the kernels and etcd.
# Their documents are docs/testing.md, docs/tensorflow.md, docs/preload.md,
# docs/gpu/kernels.md and docs/ps/etcd.md.
NOT_OF_THE_TRANSPORT = {
    "PENSTOCK_BAZEL_OUTPUT_BASE",
    "PENSTOCK_CUDA",
    "PENSTOCK_ETCD_CA",
    "PENSTOCK_ETCD_CERT",
    "PENSTOCK_ETCD_KEY",
    "PENSTOCK_ETCD_PASSWORD_FILE",
    "PENSTOCK_ETCD_USER",
    "PENSTOCK_LIBRARY",
    "PENSTOCK_TENSORFLOW",
    "PENSTOCK_TENSORFLOW_ALL_REDUCE",
    "PENSTOCK_TENSORFLOW_HELD_MIB",
    "PENSTOCK_TENSORFLOW_MEMORY",
    "PENSTOCK_GRPC_HOSTS",
    "PENSTOCK_TORCH",
}
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^ *(```|~~~)")
# A quoted path of this tree, or of one of its folders.
QUOTED_PATH = re.compile(
    r"`((?:transport|tensor_service|ps|examples|tests|docs|tools|bench|python|"
    r"frameworks|cli|collectives|preload|deploy)/[\w./-]*)`")


# A function of a class, between back quotes.
QUOTED_FUNCTION = re.compile(r"`(?:\w+::)*([A-Z]\w+)::([A-Z]\w+)`")


def text_of(path):
    return path.read_text(encoding="utf-8")


def documents(root):
    found = sorted((root / "docs").glob("**/*.md"))
    found += sorted(root.glob("*.md"))
    for top in ("deploy", "examples", "bench", "ps", "python",
                "tensor_service", "transport"):
        found += sorted((root / top).glob("**/README.md"))
    return found


def sources(root):
    """Returns code, build files and scripts, which name documents in comments.
    """
    for top in ("bench", "cli", "debian", "examples", "frameworks", "packaging",
                "penstock", "preload", "ps", "python", "tensor_service",
                "tests", "third_party", "tools", "transport"):
        for path in sorted((root / top).glob("**/*")):
            # Skips the tests of documents, which invent some names.
            if path.parent == root / "tests/docs":
                continue
            if path.is_file() and (path.name == "BUILD" or path.suffix in (
                    "", ".bzl", ".c", ".cc", ".cu", ".h", ".proto", ".py",
                    ".pyi", ".sh")):
                yield path


def deployment(root):
    """Returns the files that start programs and set variables for them."""
    return [path for path in sorted((root / "deploy").glob("**/*"))
            if path.suffix in (".yaml", ".sbatch") or path.name == "Dockerfile"]


def settings(root):
    """Returns the variables of the table of settings, and the log's."""
    return {name
            for file in ("transport/settings/table.h", "transport/base/log.h")
            for name in SETTING.findall(text_of(root / file))}


def without_code_blocks(text):
    lines, inside = [], False
    for line in text.splitlines():
        if FENCE.match(line):
            inside = not inside
        elif not inside:
            lines.append(line)
    return "\n".join(lines)


def anchors(text):
    """Returns the anchors of the headings, made as GitHub makes them."""
    found = set()
    for line in without_code_blocks(text).splitlines():
        heading = re.match(r"#+ +(.*)", line)
        if heading:
            words = re.sub(r"[^\w\- ]", "", heading[1].lower())
            found.add(words.strip().replace(" ", "-"))
    return found


def broken_links(root, path):
    for target in LINK.findall(without_code_blocks(text_of(path))):
        if re.match(r"[a-z]+:", target):
            continue  # the link leads to another site
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        if not file.exists():
            yield f"{path.relative_to(root)}: no such file: {target}"
        elif anchor and file.suffix == ".md":
            if anchor not in anchors(text_of(file)):
                yield f"{path.relative_to(root)}: no such heading: {target}"


def unresolved_paths(root, path):
    for target in QUOTED_PATH.findall(without_code_blocks(text_of(path))):
        if not (root / target).exists():
            yield f"{path.relative_to(root)}: no such path: {target}"


def functions(root):
    """Returns Class::Function for all functions that a source file defines, or
    that a header declares in the class with the file's name."""
    found = set()
    for path in (root / "transport").rglob("*.cc"):
        found |= set(re.findall(r"\b([A-Z]\w+::~?[A-Z]\w+)\(", text_of(path)))
    for path in (root / "transport").rglob("*.h"):
        owner = None
        for line in text_of(path).splitlines():
            begun = re.match(r"\s*(?:class|struct)\s.*?([A-Z]\w+)(?: final)?"
                             r"(?: :.*)? *\{?$", line)
            owner = begun[1] if begun else owner
            found |= {f"{owner}::{name}"
                      for name in re.findall(r"\b([A-Z]\w+)\(", line)}
    return found


class SettingsTest(unittest.TestCase):
    """Checks the variables that documents name.
    //tests/transport/settings:document_test has the rest."""

    def test_there_are_settings(self):
        # Fails if the pattern is out of date; the document may be right.
        self.assertLessEqual({"PENSTOCK_POLICY", "PENSTOCK_LOG"},
                             settings(ROOT))

    def test_every_variable_that_a_document_names_is_a_setting(self):
        known = settings(ROOT) | NOT_OF_THE_TRANSPORT
        self.assertEqual([f"{path.relative_to(ROOT)}: {name}"
                          for path in documents(ROOT) + deployment(ROOT)
                          for name in VARIABLE.findall(text_of(path))
                          if name not in known], [])

    def test_no_setting_has_two_paragraphs(self):
        topics = re.findall(r"^\*\*([^*]+)\.\*\*",
                            text_of(ROOT / "docs/settings.md"), re.MULTILINE)
        self.assertIn("Stub memory", topics)
        self.assertEqual(sorted(set(topics)), sorted(topics))

    def test_the_doctor_knows_the_variables_of_others(self):
        text = text_of(ROOT / "cli/doctor/process.cc")
        known = re.search(r"kVariablesOfOthers\[\] = \{(.*?)\}", text,
                          re.DOTALL)[1]
        self.assertEqual(set(SETTING.findall(known)), NOT_OF_THE_TRANSPORT)


class LinksTest(unittest.TestCase):

    def test_every_quoted_function_is_in_the_tree(self):
        known = functions(ROOT)
        self.assertIn("Session::Flush", known)
        path = ROOT / "docs" / "way_of_a_message.md"
        quoted = QUOTED_FUNCTION.findall(text_of(path))
        self.assertGreater(len(quoted), 10)
        self.assertEqual([f"{owner}::{name}" for owner, name in quoted
                          if f"{owner}::{name}" not in known], [])

    def test_every_file_on_the_way_of_a_message_is_in_the_tree(self):
        # The traces leave out the prefix "transport/".
        path = ROOT / "docs" / "way_of_a_message.md"
        quoted = set(re.findall(r"`([\w/]+/\w+\.(?:cc|h))`", text_of(path)))
        self.assertGreater(len(quoted), 100)
        self.assertEqual([name for name in sorted(quoted)
                          if not (ROOT / name).exists()
                          and not (ROOT / "transport" / name).exists()], [])

    def test_every_file_of_the_two_front_ends_is_in_the_tree(self):
        rows = re.findall(r"^\| `[\w:]+` \|[^|]*\|([^|]*)\|([^|]*)\|$",
                          text_of(ROOT / "docs" / "new_front_end.md"),
                          re.MULTILINE)
        files = [f"transport/{folder}/{name}" for row in rows
                 for folder, cell in zip(("grpc", "rpc"), row)
                 for name in re.findall(r"`([\w./]+\.h)`", cell)]
        self.assertGreater(len(files), 8)
        self.assertEqual([file for file in files if not (ROOT / file).exists()],
                         [])

    def test_every_link_leads_to_a_file_and_heading_of_the_tree(self):
        self.assertEqual([problem for path in documents(ROOT)
                          for problem in broken_links(ROOT, path)], [])

    def test_every_document_that_a_source_names_is_in_the_tree(self):
        named = {(path, name) for path in sources(ROOT)
                 for name in re.findall(r"\bdocs/[\w./-]+\.md\b",
                                        text_of(path))}
        self.assertGreater(len(named), 50)
        self.assertEqual([f"{path.relative_to(ROOT)}: {name}"
                          for path, name in sorted(named)
                          if not (ROOT / name).exists()], [])

    def test_every_quoted_path_is_in_the_tree(self):
        # Checks only docs/, because an example's README quotes paths of its
        # own folder.
        self.assertEqual([problem
                          for path in sorted((ROOT / "docs").glob("**/*.md"))
                          for problem in unresolved_paths(ROOT, path)], [])


# A commit, as documents write it: "commit 9d671e4", or "c74a969" in back
# quotes.
COMMIT = re.compile(r"(?:\bcommit |[`(])([0-9a-f]{7}(?:[0-9a-f]{33})?)\b")


def git(*arguments):
    return subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "-C", ROOT, *arguments],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def is_in_the_history(commit):
    return git("merge-base", "--is-ancestor", commit, "HEAD").returncode == 0


class CommitsTest(unittest.TestCase):

    def test_every_commit_that_a_document_names_is_in_the_history(self):
        if not is_in_the_history("HEAD"):
            self.skipTest("not a working tree of Git")
        if "true" in git("rev-parse", "--is-shallow-repository").stdout:
            self.skipTest("the history is cut off")
        self.assertEqual([f"{path.relative_to(ROOT)}: {commit}"
                          for path in documents(ROOT)
                          for commit in sorted(set(COMMIT.findall(
                              text_of(path))))
                          if re.search("[a-f]", commit)
                          and not is_in_the_history(commit)], [])


DATE = re.compile(r"\b(?:January|February|March|April|May|June|July|August|"
                  r"September|October|November|December)\s+20\d\d\b"
                  r"|\b20\d\d-\d\d-\d\d\b(?!-)")


class MapTest(unittest.TestCase):

    def test_the_map_has_every_page(self):
        folder = ROOT / "docs"
        linked = set(LINK.findall(text_of(folder / "README.md")))
        linked = {target.partition("#")[0] for target in linked}
        pages = [path.relative_to(folder).as_posix()
                 for path in sorted(folder.glob("**/*.md"))
                 if path.parent.name != "lab" and path.name != "README.md"]
        self.assertGreater(len(pages), 20)
        self.assertEqual([page for page in pages if page not in linked], [])

    def test_only_studies_and_results_have_dates(self):
        self.assertTrue(DATE.search("on 23\nNovember 2026"))
        self.assertEqual(
            [f"{path.relative_to(ROOT)}: {found[0]}"
             for path in documents(ROOT)
             if path.parent.name != "lab"
             and path.name not in ("results.md", "CHANGELOG.md")
             for found in DATE.finditer(without_code_blocks(text_of(path)))],
            [])


class LabTest(unittest.TestCase):
    """Checks that docs/lab has one dated page per study, and an index."""

    def test_every_study_has_its_date_and_its_row(self):
        folder = ROOT / "docs/lab"
        index = text_of(folder / "README.md")
        studies = sorted(path.name for path in folder.iterdir()
                         if path.name != "README.md")
        self.assertGreater(len(studies), 20)
        rows = re.findall(r"^\| (\d{4}-\d\d-\d\d) \| \[.*\]\((\1-.*\.md)\) \|",
                          index, re.MULTILINE)
        self.assertEqual(studies, sorted(name for _, name in rows))


class PackagesTest(unittest.TestCase):
    """Checks that docs/packages.md names each package and the needs of a
    build."""

    def setUp(self):
        self.text = text_of(ROOT / "docs/packages.md")

    def test_every_package_has_its_row(self):
        packages = re.findall(r"^Package: (\S+)$",
                              text_of(ROOT / "debian/control"), re.MULTILINE)
        self.assertIn("penstock-tools", packages)
        self.assertEqual([name for name in packages
                          if f"\n| `{name}` |" not in self.text], [])

    def test_the_compilers_are_those_that_the_packages_are_tested_with(self):
        compilers = re.search(r'^COMPILERS = "(.*)"$',
                              text_of(ROOT / "tests/packages/packages_test.py"),
                              re.MULTILINE)[1]
        self.assertIn(f"apt-get install {compilers}\n", self.text)


class ThreadsTest(unittest.TestCase):

    def names(self):
        """Returns the names of threads in the sources that start threads."""
        starts = re.compile(r"StartDetachedThread|EventLoop::Create|Crew ")
        sources = [text_of(path)
                   for path in (ROOT / "transport").glob("**/*.cc")]
        return {name for text in sources if starts.search(text)
                for name in re.findall(r'"(penstock-[a-z]+)"', text)}

    def test_every_thread_is_in_both_documents(self):
        self.assertGreater(len(self.names()), 8)
        for file in "docs/threading.md", "docs/operations/capacity.md":
            text = text_of(ROOT / file)
            with self.subTest(file=file):
                self.assertEqual([name for name in sorted(self.names())
                                  if f"`{name}`" not in text], [])


class PythonReadmeTest(unittest.TestCase):

    def test_the_first_client_dials_what_the_first_server_serves(self):
        text = text_of(ROOT / "python/README.md")
        code = "".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
        served = re.findall(r'TensorServer\("(.*?)"\)', code)
        dialled = re.findall(r'TensorClient\("(.*?)"\)', code)
        self.assertEqual(len(served), 1)
        self.assertEqual(served, dialled)


class ProtocolTest(unittest.TestCase):
    """Checks that docs/protocol.md names each frame type with its number."""

    def numbers(self, file, enum):
        body = re.search(rf"enum class {enum}[^{{]*{{(.*?)}};",
                         text_of(ROOT / file), re.DOTALL)[1]
        return dict(re.findall(r"(k\w+) = (\d+)", body))

    def check(self, file, enum):
        rows = set(re.findall(r"^\| (\d+) \| `(k\w+)` \|",
                              text_of(ROOT / "docs/protocol.md"),
                              re.MULTILINE))
        wanted = {(number, name)
                  for name, number in self.numbers(file, enum).items()}
        self.assertTrue(wanted)
        self.assertEqual(sorted(wanted - rows), [])

    def test_every_frame_type_has_a_row(self):
        self.check("transport/wire/frame.h", "FrameType")

    def test_every_unit_type_has_a_row(self):
        self.check("transport/fabric/tcp/framing.h", "UnitType")


# A test of this tree that a document names: `flood_attacks_test:
# DoorbellsAreCheap` is the test DoorbellsAreCheap of the file
# flood_attacks_test in tests/.
NAMED_TEST = re.compile(r"`([\w/]+): (\w+)`")


def claims(text, heading="What a hostile peer can do"):
    """Returns the points of a section, each as one line."""
    section = re.search(rf"^## {heading}\n(.*?)^## ", text,
                        re.DOTALL | re.MULTILINE)[1]
    points = re.findall(r"^- (.*?)(?=^\S|\Z)", section,
                        re.DOTALL | re.MULTILINE)
    return [" ".join(point.split()) for point in points]


def has_test(root, file, name):
    sources = [path for suffix in ("cc", "py")
               for path in (root / "tests").glob(f"**/{file}.{suffix}")]
    return any(re.search(rf"\b{name}\b", text_of(path)) for path in sources)


class SecurityTest(unittest.TestCase):
    """Checks that each claim about hostile peers and strangers names its
    test."""

    def setUp(self):
        details = text_of(ROOT / "docs/security.md")
        self.claims = [
            *claims(details),
            *claims(details, "What a stranger can do"),
            *claims(text_of(ROOT / "SECURITY.md"), "What is protected today")]

    def test_there_are_claims(self):
        # Fails if the pattern is out of date; the document may be right.
        self.assertGreater(len(self.claims), 30)

    def test_every_claim_names_a_test(self):
        self.assertEqual([claim for claim in self.claims
                          if not NAMED_TEST.search(claim)], [])

    def test_every_named_test_is_in_the_tree(self):
        self.assertEqual([f"{file}: {name}" for claim in self.claims
                          for file, name in NAMED_TEST.findall(claim)
                          if not has_test(ROOT, file, name)], [])


class CheckerTest(unittest.TestCase):
    """Tests the checks themselves."""

    def test_headings_become_anchors(self):
        self.assertEqual(anchors("# One `two`, three\n```\n# not\n```\n"),
                         {"one-two-three"})

    def test_a_link_in_a_code_block_is_no_link(self):
        self.assertEqual(
            LINK.findall(without_code_blocks("```\n[a](b)\n```\n[c](d)")),
            ["d"])

    def test_claims_are_the_points_of_one_section(self):
        self.assertEqual(
            claims("## What a hostile peer can do\n\nIt can\n\n- one,\n  two;\n"
                   "- three.\n\nIt cannot\n\n- four.\n\n## Else\n- five\n"),
            ["one, two;", "three.", "four."])

    def test_commits_are_found(self):
        self.assertEqual(COMMIT.findall("commit 9d671e4, (c74a969) `92fc0cf`"),
                         ["9d671e4", "c74a969", "92fc0cf"])
        self.assertEqual(COMMIT.findall("-n 1048576 of f00dbeef"), [])

    def test_a_test_of_another_name_is_none(self):
        self.assertFalse(has_test(ROOT, "greeting_test", "NoSuchTest"))
        self.assertTrue(has_test(ROOT, "docs_test", "test_there_are_claims"))


if __name__ == "__main__":
    if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]):
        ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
