"""Finds the links of a static site that lead nowhere."""

import html.parser
import urllib.parse


class Page(html.parser.HTMLParser):
    """The targets of the links of a page, and its anchors."""

    def __init__(self, text):
        super().__init__()
        self.targets, self.anchors = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or name == "name" and tag == "a":
                self.anchors.add(value)
            elif name in ("href", "src"):
                self.targets.add(value)


def broken_links(site):
    """Yields "PAGE: TARGET" for each link to a file or an anchor that is not
    there. Ignores links to other sites."""
    site = site.resolve()
    pages = {path: Page(path.read_text(encoding="utf-8", errors="replace"))
             for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for target in sorted(page.targets):
            parts = urllib.parse.urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            name = urllib.parse.unquote(parts.path)
            file = (path.parent / name).resolve() if name else path
            if name.startswith("/"):
                file = site / name.lstrip("/")
            if file.is_dir():
                file = file / "index.html"
            anchor = urllib.parse.unquote(parts.fragment)
            if site not in file.parents or not file.is_file():
                yield f"{path.relative_to(site)}: {target}"
            elif (anchor and file in pages
                  and anchor not in pages[file].anchors):
                yield f"{path.relative_to(site)}: {target}"
