"""Hook of mkdocs that adds files outside `docs/` to the site, and corrects the links of all pages.

Links in Markdown files are relative to the file that contains them, so that they work in the repository. On a page of
the site, a link to a file outside `docs/` leads to the repository's host, or becomes plain text if no `repo_url` is
set. README, CONTRIBUTING, CHANGELOG and SECURITY become pages.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

PAGES = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
}
"""The source file in the repository, by the page of the site that it becomes."""
LINK = re.compile(r"\[(?P<text>(?:[^][]|\[[^]]*\])*)\]\((?P<target>[^)#\s:]+)(?P<anchor>#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages whose source files are at the repository's root."""
    root = Path(config.docs_dir).parent
    for page, source in PAGES.items():
        files.append(File.generated(config, page, content=(root / source).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Returns the Markdown of a page with links to other pages, or to the repository's host.

    Raises:
        FileNotFoundError: a link leads to a file that does not exist.
    """
    source = PAGES.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    root = Path(config.docs_dir).parent

    def linked(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), found["target"]))
        if not (root / path).exists():
            raise FileNotFoundError(f"{source} links to {found['target']}, which does not exist; correct the link")
        target = _page_of(path)
        if target is not None and files.get_file_from_path(target):
            address = posixpath.relpath(target, posixpath.dirname(page.file.src_uri) or ".")
            return f"[{found['text']}]({address}{found['anchor'] or ''})"
        if not config.repo_url:
            return found["text"]
        return f"[{found['text']}]({config.repo_url.rstrip('/')}/blob/HEAD/{path}{found['anchor'] or ''})"

    return LINK.sub(linked, markdown)


def _page_of(path: str) -> str | None:
    """Returns the page that a file of the repository becomes; None if the file is not a page."""
    for page, source in PAGES.items():
        if path == source:
            return page
    return path.removeprefix("docs/") if path.startswith("docs/") else None
