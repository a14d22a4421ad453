"""A hook of mkdocs: the tutorials, kept as py:percent notebooks, become pages with their output."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import jupytext
import nbformat
from mkdocs.structure.files import File
from nbclient import NotebookClient

TIMEOUT = 300  # seconds a cell
# where the tests have run them, their output is not needed twice
RUN = os.environ.get("TUTORIALS") != "unrun"


def executed(path: Path) -> nbformat.NotebookNode:
    """The notebook run from top to bottom in a kernel of its own; an error in a cell is an error
    here.
    """
    notebook = jupytext.read(path)
    with TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=TIMEOUT,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
        )
        client.extra_arguments = ["--IPKernelApp.log_level=ERROR"]  # it remarks on its own sockets
        client.execute()
    return notebook


def as_markdown(notebook: nbformat.NotebookNode, name: str) -> tuple[str, dict[str, bytes]]:
    """The page, and the pictures it shows by their file names. What a cell says on stderr, a
    warning above all, is refused.
    """
    parts: list[str] = []
    images: dict[str, bytes] = {}
    for cell in notebook.cells:
        if cell.cell_type != "code":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            if output.get("name") == "stderr":
                raise ValueError(f"{name}: a cell warns or complains: {output.text}")
            data = output.get("data", {})
            if "image/png" in data:
                images[f"{name}-{len(images) + 1}.png"] = base64.b64decode(data["image/png"])
                parts.append(f"![Output of the code above]({list(images)[-1]})")
            else:
                parts.append(
                    f"```text\n{(output.get('text') or data.get('text/plain', '')).rstrip()}\n```"
                )
    return "\n\n".join(parts) + "\n", images


def on_files(files, config):
    """Called by mkdocs once it knows the files of docs/."""
    for path in sorted((Path(config.docs_dir) / "tutorials").glob("*.py")):
        markdown, images = as_markdown(executed(path) if RUN else jupytext.read(path), path.stem)
        source = f"[{path.name}]({path.name})"
        markdown += f"\nThis page as a notebook, in the text format of jupytext: {source}.\n"
        files.append(File.generated(config, f"tutorials/{path.stem}.md", content=markdown))
        for name, content in images.items():
            files.append(File.generated(config, f"tutorials/{name}", content=content))
    return files
