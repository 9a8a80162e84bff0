"""Builds the site; tools/docs runs it, with MkDocs and pdoc installed.

Usage: build.py PACKAGE SITE. PACKAGE is the folder of the Python package, with its
module; SITE is replaced.
"""

import io
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from xml.etree import ElementTree

import broken_links
import headers
import pages

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HERE = pathlib.Path(__file__).resolve().parent


def entry(location, name, language, text):
    """Returns an entry of the search's index. The search knows whole words
    only, so the parts of a name are words of their own."""
    words = re.findall(r"\w+", name)
    return {"location": location, "title": f"{words[-1]}: {name} ({language})",
            "text": f"{' '.join(words)}. {text or ''}"}


def drop_links_to_hidden_classes(folder):
    """Drops links to sections that do not exist. Doxygen lists a section of
    nested classes if all of them are private, and does not write the section.
    """
    for page in folder.glob("class*.html"):
        text = page.read_text(encoding="utf-8")
        if 'name="nested-classes"' not in text:
            page.write_text(
                re.sub(r'<a href="#nested-classes">[^<]*</a>( &#124;\s*)?', "",
                       text), encoding="utf-8")


def document_cpp(work, folder):
    """Writes the C++ reference. Returns its entries for the search."""
    headers.lay_out(ROOT, work / "headers")
    folder.mkdir(parents=True)
    tags = work / "tags.xml"
    config = ((HERE / "Doxyfile").read_text(encoding="utf-8")
              + f"OUTPUT_DIRECTORY = {folder}\nHTML_OUTPUT = .\n"
              + f"STRIP_FROM_INC_PATH = {work}/headers\n"
              + f"GENERATE_TAGFILE = {tags}\n")
    subprocess.run(["doxygen", "-"], input=config, text=True, check=True,
                   cwd=work / "headers")
    drop_links_to_hidden_classes(folder)
    entries = []
    for compound in ElementTree.parse(tags).getroot().iter("compound"):
        if compound.get("kind") not in ("class", "struct", "namespace"):
            continue
        name = compound.findtext("name")
        entries.append(entry(f"api/cpp/{compound.findtext('filename')}",
                             name, "C++", ""))
        for member in compound.iter("member"):
            if (member.get("kind") == "friend"
                    or member.findtext("name").startswith("~")):
                continue
            place = (f"api/cpp/{member.findtext('anchorfile')}"
                     f"#{member.findtext('anchor')}")
            entries.append(entry(place, f"{name}::{member.findtext('name')}",
                                 "C++", member.findtext("arglist")))
    return entries


def members_of(namespace):
    for member in namespace.own_members:
        if member.name.startswith("_"):
            continue
        yield member
        if member.kind == "class":
            yield from members_of(member)


def document_python(package, work, folder):
    """Writes the Python reference. Returns its entries for the search."""
    sys.path.append("/usr/lib/python3/dist-packages")  # NumPy
    sys.path.insert(0, str(work))
    shutil.copytree(package, work / "penstock")
    # pdoc looks there for the signatures, and runs the file as Python.
    stubs = (work / "penstock/_penstock.pyi").read_text(encoding="utf-8")
    (work / "penstock/__init__.pyi").write_text(
        "from __future__ import annotations\n" + stubs, encoding="utf-8")
    # pylint: disable=import-outside-toplevel  # the path is set above
    import pdoc
    names = ["penstock", "penstock.ps"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", message="Error parsing type stubs")
        pdoc.pdoc(*names, output_directory=folder)
        modules = [pdoc.doc.Module.from_name(name) for name in names]
    entries = []
    for module in modules:
        page = f"api/python/{module.modulename.replace('.', '/')}.html"
        entries.append(entry(page, module.modulename, "Python",
                             module.docstring))
        entries += [entry(f"{page}#{member.qualname}", member.fullname,
                          "Python", member.docstring)
                    for member in members_of(module)]
    return entries


def build_site(work, found, entries, site):
    """Makes HTML of the pages, and adds the entries to the search."""
    # pylint: disable=import-outside-toplevel  # what does not need MkDocs runs
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
    text = work / "pages" / pages.MAP
    build(load_config(
        io.BytesIO(b"{}"), site_name="Penstock", docs_dir=str(work / "pages"),
        site_dir=str(site), use_directory_urls=False,
        nav=pages.navigation(
            found, text.read_text(encoding="utf-8") if text.exists() else ""),
        theme={"name": "readthedocs", "highlightjs": False,
               "navigation_depth": 2},
        markdown_extensions=[
            "tables", "fenced_code", "sane_lists",
            {"toc": {"slugify": pages.slug}},
            {"codehilite": {"noclasses": True, "guess_lang": False}}],
        extra_css=["extra.css"], plugins=["search"], validation={"links": {"anchors": "info"}}))
    index = site / "search/search_index.json"
    content = json.loads(index.read_text(encoding="utf-8"))
    content["docs"] += entries
    index.write_text(json.dumps(content), encoding="utf-8")


def main():
    package, site = map(pathlib.Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        found = pages.lay_out(ROOT, work / "pages")
        shutil.copy(HERE / "extra.css", work / "pages")
        entries = document_cpp(work, work / "pages/api/cpp")
        entries += document_python(package.resolve(), work,
                                   work / "pages/api/python")
        build_site(work, found, entries, site.resolve())
    broken = list(broken_links.broken_links(site))
    for link in broken:
        print(f"broken link: {link}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
