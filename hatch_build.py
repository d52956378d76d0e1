"""The page of the package: README.md with links that lead somewhere from anywhere, and the addresses of the project.

The address of the repository is set in one place, `address` under `[tool.hatch.metadata.hooks.custom]` in
pyproject.toml. A version's files are read at its tag. Without an address a link becomes its text and a picture is left
out, so that the page has no dead link.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

#: A link or a picture (with "!") to a file of the repository; the text, and the path.
RELATIVE = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)\s]+)\)")


def page(readme: str, address: str, version: str) -> str:
    """Return the text of README.md as it is shown on a page outside the repository."""

    def absolute(link: re.Match[str]) -> str:
        mark, text, path = link.groups()
        if not address:
            return "" if mark else text
        kind = "raw" if mark else "blob"
        return f"{mark}[{text}]({address}/{kind}/v{version}/{path})"

    return re.sub(r"\n{3,}", "\n\n", RELATIVE.sub(absolute, readme))


def addresses(address: str, version: str) -> dict[str, str]:
    """Return the addresses of the project by what they lead to; none without an address."""
    if not address:
        return {}
    files = f"{address}/blob/v{version}"
    return {
        "Source": address,
        "Documentation": f"{files}/docs/index.md",
        "Changelog": f"{files}/CHANGELOG.md",
    }


class PageHook(MetadataHookInterface):
    """Fill in the page and the addresses when a wheel or an sdist is built."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the dynamic fields of pyproject.toml."""
        address = self.config["address"].rstrip("/")
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = page(readme, address, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = addresses(address, metadata["version"])
