"""The pages of the site: the documents of the tree, at their paths, and what they
link to."""

import pathlib
import re
import shutil

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^ *(```|~~~)")
MAP = "docs/README.md"
PROJECT = ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
API = "api/README.md"

API_PAGE = """# API reference

- [C++](cpp/index.html): the headers in `penstock/`, which packages have. Those of
  the tensor service and the parameter server's client are for programs that are
  built in this tree.
- [Python](python/penstock.html): the package `penstock`, and
  [`penstock.ps`](python/penstock/ps.html) for parameter servers.

The search of this site finds the names of both.
"""


def documents(root):
    """Returns the paths of the documents, relative to the root of the tree."""
    found = sorted(root.glob("docs/**/*.md")) + sorted(root.glob("*.md"))
    for top in ("bench", "deploy", "examples", "ps", "python",
                "tensor_service", "transport"):
        found += sorted(root.glob(f"{top}/**/README.md"))
    return [path.relative_to(root).as_posix() for path in found]


def links(text):
    """Returns the targets of the links of a document, without those in code
    blocks."""
    inside = False
    for line in text.splitlines():
        if FENCE.match(line):
            inside = not inside
        elif not inside:
            yield from LINK.findall(line)


def linked_files(root, page, text):
    """Returns the files of the tree that a page links to, relative to the
    root."""
    for target in links(text):
        name = target.partition("#")[0]
        if not name or re.match(r"[a-z]+:", target):
            continue
        file = (root / page).parent.joinpath(name).resolve()
        if file.is_file():
            yield file.relative_to(root.resolve()).as_posix()


def slug(text, separator="-"):
    """Returns the anchor of a heading, made as GitHub makes it."""
    words = re.sub(r"[^\w\- ]", "", text.lower())
    return words.strip().replace(" ", separator)


def navigation(pages, map_text):
    """Returns the menu: the sections of the map, then the pages that it leaves
    out. `map_text` is the text of docs/README.md, or "" without that file."""
    sections, seen = [], {"README.md", MAP, API, *PROJECT}
    # Puts the links before the first section into a section for everyone.
    text = re.sub(r"\A# .*", "## Everyone", map_text)
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        listed = []
        for target in links(body):
            page = pathlib.posixpath.normpath(
                pathlib.posixpath.join("docs", target.partition("#")[0]))
            if page in pages and page not in seen:
                seen.add(page)
                listed.append(page)
        if listed:
            sections.append({title.strip(): listed})
    others = [page for page in pages if page not in seen]
    first = ["README.md"] + [MAP] * (MAP in pages)
    return (first + sections + ([{"More": others}] if others else [])
            + [API, {"Project": [page for page in PROJECT if page in pages]}])


def lay_out(root, folder):
    """Copies the documents, and the files that they link to, below a folder.

    Returns the pages.
    """
    pages = documents(root)
    for page in pages:
        text = (root / page).read_text(encoding="utf-8")
        for file in {page, *linked_files(root, page, text)}:
            target = folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / file, target)
    (folder / API).parent.mkdir(exist_ok=True)
    (folder / API).write_text(API_PAGE, encoding="utf-8")
    return pages + [API]
