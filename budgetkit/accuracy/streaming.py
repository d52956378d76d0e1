"""Corpora larger than the memory: counted and compared batch by batch, here or on a cluster.

A file is read in blocks that begin and end at seams (:mod:`budgetkit.counters.seams`), so their exact counts add up
to the file's. A block begins at the first seam from its offset on, and the block before ends there: every worker finds
it by itself, and no byte belongs to two blocks. Nothing is remembered of what was counted, for it does not come again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

import pandas as pd

from budgetkit.accuracy import compare
from budgetkit.accuracy.corpora import Corpus, Document
from budgetkit.accuracy.dask import Client, answers
from budgetkit.counters import Counter, ExactCounter, counter
from budgetkit.counters.accelerated import counting_many
from budgetkit.counters.seams import parts
from budgetkit.counters.threads import counted_in_threads

__all__ = ["BLOCK", "compare_stream", "count_files"]

#: Bytes of a file, or code points of documents, that are counted at a time.
BLOCK: Final = 4 << 20
_FARTHEST: Final = 64 << 20  # bytes that are searched for a seam
_WINDOW: Final = 1 << 16
_BESIDE: Final = 3  # bytes of the longest character on either side of a seam
# Seams as bytes show them: a space after an ASCII character; a mark after a letter of ASCII, or after a Chinese or
# Korean one whose first byte settles that it is one.
_SEAM: Final = re.compile(
    rb"(?<=[!-~]) |(?:(?<=[0-9A-Za-z])|(?<=[\xe5-\xe8\xeb\xec][\x80-\xbf]{2}))"
    rb"(?:[\t\n\r ,.:;!?()]|\xe3\x80[\x81\x82]|\xef\xbc[\x81\x8c\x9a\x9b\x9f])"
)


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of a file, in bytes; it begins and ends at the first seam from each of them on."""

    path: str
    start: int
    stop: int


def count_files(
    paths: Iterable[str | os.PathLike[str]],
    exact: str | ExactCounter = "o200k_base",
    client: Client | None = None,
    progress: bool = False,
    block: int = BLOCK,
) -> pd.DataFrame:
    """Count text files exactly, in memory that does not grow with them.

    Parameters
    ----------
    paths : iterable of str or path
        UTF-8 text; on a cluster, paths that its workers can open.
    exact : str or ExactCounter
        The counter or its name.
    client : dask.distributed.Client, optional
        The cluster that counts; this process, on all its cores, when left out.
    progress : bool
        Whether to show a bar.
    block : int
        Bytes counted at a time.

    Returns
    -------
    DataFrame
        One row a file: path, bytes, and tokens.

    Raises
    ------
    ValueError
        If the counter is not exact, a file is not UTF-8, or it has no place to cut for 64 MiB.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
    ...     _ = file.write("Hello world " * 1_000), file.flush()
    ...     count_files([file.name])[["bytes", "tokens"]].to_dict("list")
    {'bytes': [12000], 'tokens': [2001]}
    """
    from tqdm.auto import tqdm

    made = _exact(exact)
    sizes = {str(path): Path(path).stat().st_size for path in paths}
    tokens = dict.fromkeys(sizes, 0)
    blocks = (Block(path, at, min(at + block, size)) for path, size in sizes.items() for at in range(0, size, block))
    with tqdm(total=sum(sizes.values()), unit="B", unit_scale=True, disable=not progress, desc="counting") as bar:
        for asked, found in answers(partial(count_block, encoding=made.encoding), blocks, client):
            tokens[asked.path] += found
            bar.update(asked.stop - asked.start)
    return pd.DataFrame({"path": [*sizes], "bytes": [*sizes.values()], "tokens": [*tokens.values()]})


def count_block(block: Block, encoding: str) -> tuple[Block, int]:
    """Count one block of a file."""
    with open(block.path, "rb") as stream:
        start, stop = _first_seam(stream, block, block.start), _first_seam(stream, block, block.stop)
        stream.seek(start)
        text = _decoded(stream.read(stop - start), block.path, start)
    return block, sum(counted_in_threads(counting_many(encoding, len(text)), [*parts(text)]))


def _decoded(read: bytes, path: str, start: int) -> str:
    try:
        return read.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}, byte {start + error.start:,}: not UTF-8; text files are counted as UTF-8; "
            "save it as UTF-8 or leave it out"
        ) from None


def _first_seam(stream: BinaryIO, block: Block, offset: int) -> int:
    """Return the first seam from an offset on, or the end of the file."""
    if offset == 0:
        return 0
    size = stream.seek(0, os.SEEK_END)
    for at in range(offset, min(size, offset + _FARTHEST), _WINDOW):
        before = min(at, _BESIDE)
        stream.seek(at - before)
        found = _SEAM.search(stream.read(before + _WINDOW + _BESIDE), before)
        if found and found.start() < before + _WINDOW:  # one beyond may have another before it
            return at - before + found.start()
    if offset + _FARTHEST >= size:
        return size
    raise ValueError(
        f"{block.path}, byte {offset:,}: {_FARTHEST >> 20} MiB without a blank or a mark after a word; "
        "text is cut there to be counted in bounded memory; break its lines, or count it as one string"
    )


def _exact(given: str | ExactCounter) -> ExactCounter:
    made = counter(given) if isinstance(given, str) else given
    if isinstance(made, ExactCounter):
        return made
    raise ValueError(
        f"files were to be counted with {made.name}; only exact counts of parts add up to the whole's; "
        "use an encoding such as 'o200k_base', or compare_stream for estimates"
    )


def compare_stream(
    counters: Sequence[Counter | str],
    documents: Iterable[Document],
    exact: Counter | str = "o200k_base",
    client: Client | None = None,
    progress: bool = False,
    characters: int = BLOCK // 4,
) -> Iterator[pd.DataFrame]:
    """Count every document with every counter, batch by batch.

    Parameters
    ----------
    counters : sequence of Counter or str
        Counters or their names; on a cluster, such as can be pickled.
    documents : iterable of Document
        Asked for as they are needed, so that they may be more than fit into memory.
    exact : Counter or str
        The counter that is right.
    client : dask.distributed.Client, optional
        The cluster that counts; this process, on two cores, when left out.
    progress : bool
        Whether to show a bar.
    characters : int
        Code points of a batch; a document stays whole.

    Returns
    -------
    iterator of DataFrame
        Rows as :func:`budgetkit.accuracy.compare` gives them, in the documents' order; joined they are what it gives
        of all documents, but for the order of the counters' rows.

    Examples
    --------
    Files that are read one at a time:

    >>> from budgetkit import corpora, files
    >>> paths = [files.data_path("corpora/" + name) for name in ("prose.txt", "code.txt")]
    >>> documents = (document for path in paths for document in corpora.folder(path))
    >>> pd.concat(compare_stream(["chars/4"], documents))["document"].tolist()
    ['prose.txt', 'code.txt']
    """
    from tqdm.auto import tqdm

    with tqdm(unit="document", disable=not progress, desc="comparing") as bar:
        compared = partial(_compared, counters=counters, exact=exact)
        for size, rows in answers(compared, _batches(documents, characters), client):
            bar.update(size)
            yield rows


def _compared(
    batch: list[Document], counters: Sequence[Counter | str], exact: Counter | str
) -> tuple[int, pd.DataFrame]:
    return len(batch), compare(counters, Corpus(tuple(batch)), exact)


def _batches(documents: Iterable[Document], characters: int) -> Iterator[list[Document]]:
    batch: list[Document] = []
    length = 0
    for document in documents:
        batch.append(document)
        length += len(document.text)
        if length >= characters:
            yield batch
            batch, length = [], 0
    if batch:
        yield batch
