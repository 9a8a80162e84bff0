#!/usr/bin/env python3
"""Checks the site that tools/docs makes: pages, menu, headers, links.

Needs neither MkDocs nor Doxygen. Reads the working tree, see BUILD.
"""

import pathlib
import sys
import tempfile
import unittest

import docs_test

ROOT = docs_test.ROOT
sys.path.insert(0, str(ROOT / "tools/docs_site"))
# pylint: disable=wrong-import-position  # the path is set above
import broken_links
import headers
import pages


class TreeTest(unittest.TestCase):
    """The site of this tree."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_it_has_every_document(self):
        found = pages.lay_out(ROOT, self.folder)
        self.assertEqual(
            set(found) - {pages.API},
            {path.relative_to(ROOT).as_posix()
             for path in docs_test.documents(ROOT)})
        for page in found:
            self.assertTrue((self.folder / page).is_file(), page)

    def test_every_link_to_a_file_leads_to_a_copy(self):
        for page in pages.lay_out(ROOT, self.folder):
            if page == pages.API:
                continue  # tools/docs makes the target of the link
            text = (ROOT / page).read_text(encoding="utf-8")
            for file in pages.linked_files(ROOT, page, text):
                self.assertTrue((self.folder / file).is_file(),
                                f"{page}: {file}")

    def test_every_page_is_in_the_menu(self):
        found = pages.documents(ROOT) + [pages.API]
        path = ROOT / pages.MAP
        menu = pages.navigation(found, path.read_text(encoding="utf-8")
                                if path.exists() else "")
        listed = [page for item in menu for page in
                  (sum(item.values(), []) if isinstance(item, dict)
                   else [item])]
        self.assertEqual(sorted(listed), sorted(found))

    def test_every_public_header_is_there(self):
        headers.lay_out(ROOT, self.folder)
        for header in (ROOT / "penstock").glob("*.h"):
            text = (self.folder / "penstock" / header.name).read_text(
                encoding="utf-8")
            self.assertTrue(text.startswith("/// @file\n/// "), header)


class PagesTest(unittest.TestCase):

    def test_the_menu_has_the_sections_of_the_map(self):
        found = ["README.md", "docs/README.md", "docs/a.md", "docs/b.md",
                 "docs/c.md", "python/README.md", "CHANGELOG.md", pages.API]
        self.assertEqual(
            pages.navigation(found, "# Map\n\n[c](c.md)\n\n## Users\n[b](b.md#x), "
                             "[p](../python/README.md), [web](https://x.y)\n\n"
                             "## Others\n[b](b.md)\n"),
            ["README.md", "docs/README.md",
             {"Everyone": ["docs/c.md"]},
             {"Users": ["docs/b.md", "python/README.md"]},
             {"More": ["docs/a.md"]}, pages.API,
             {"Project": ["CHANGELOG.md"]}])

    def test_anchors_are_those_of_github(self):
        for heading in ("One `two`, three", "A - B", "In C++"):
            self.assertEqual({pages.slug(heading)},
                             docs_test.anchors(f"## {heading}\n"))


class HeadersTest(unittest.TestCase):

    def test_comments_become_those_of_doxygen(self):
        self.assertEqual(
            headers.converted("// A file.\n\nclass A {\n  // Returns `a<b>`, or"
                              " <b>.\n  int a;  // a #1\n};  // class A\n"),
            "/// @file\n/// A file.\n\nclass A {\n  /// Returns `a<b>`, or"
            " \\<b\\>.\n  int a;  ///< a \\#1\n};  // class A\n")

    def test_an_example_is_code_and_the_rest_of_a_point_is_not(self):
        self.assertEqual(
            headers.converted("int a;\n// Say:\n//\n//   a<b>\n//\n//   b\n//\n"
                              "// - a point\n//   goes on\nint b;\n"),
            "int a;\n/// Say:\n///\n///       a<b>\n///\n///       b\n///\n"
            "/// - a point\n///   goes on\nint b;\n")


class BrokenLinksTest(unittest.TestCase):

    def broken(self, text):
        with tempfile.TemporaryDirectory() as folder:
            site = pathlib.Path(folder)
            (site / "b").mkdir()
            (site / "index.html").write_text(text)
            (site / "b/index.html").write_text('<a name="old"></a>'
                                               '<p id="new"></p>')
            return list(broken_links.broken_links(site))

    def test_what_is_there_is_not_broken(self):
        self.assertEqual(self.broken(
            '<a href="b/index.html#new">x</a><a href="b/#old">x</a>'
            '<img src="b/index.html?v=1"><a href="#here" id="here">x</a>'
            '<a href="https://example.com/none">x</a>'
            '<a href="mailto:x@example.com">x</a>'), [])

    def test_what_is_not_there_is_broken(self):
        for target in ("c.html", "b/index.html#none", "#none", "../x.html",
                       "b/none/", "/none.html"):
            with self.subTest(target=target):
                self.assertEqual(self.broken(f'<a href="{target}">x</a>'),
                                 [f"index.html: {target}"])
        self.assertEqual(self.broken('<img src="none.svg">'),
                         ["index.html: none.svg"])


if __name__ == "__main__":
    unittest.main()
