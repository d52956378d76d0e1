"""Corpora larger than the memory: counted and compared batch by batch, here or on a cluster.

A file is read in blocks that begin and end at seams (:mod:`budgetkit.counters.seams`), so their exact counts add up
to the file's. Where a block begins follows from its offset and the bytes there alone: every worker finds it
by itself, and no byte belongs to two blocks.
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
from budgetkit.cluster import Client, answers
from budgetkit.corpora import Corpus, Document
from budgetkit.counters import Counter, ExactCounter, counter
from budgetkit.counters.seams import parts

__all__ = ["BLOCK", "compare_stream", "count_files"]

#: Bytes of a file that are counted at a time.
BLOCK: Final = 8 << 20
_FARTHEST: Final = 256 << 20  # bytes that are searched for a seam
_WINDOW: Final = 1 << 16
_SEAM: Final = re.compile(rb"(?<=[!-~]) |(?<=[0-9A-Za-z])[\t\n\r]")


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of a file, in bytes; it begins and ends at the first seam from each of them on.

    Parameters
    ----------
    path : str
        The file, as every worker finds it.
    start, stop : int
        Offsets.
    """

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
        If the counter is not exact, a file is not UTF-8, or it has no place to cut for 256 MiB.

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
    """Count one block of a file.

    Parameters
    ----------
    block : Block
        Which.
    encoding : str
        Name of the encoding.

    Returns
    -------
    tuple of Block and int
        The block and its tokens, so that an answer says what it answers.

    Raises
    ------
    ValueError
        If the file is not UTF-8, or it has no place to cut for 256 MiB.
    """
    with open(block.path, "rb") as stream:
        start, stop = _first_seam(stream, block, block.start), _first_seam(stream, block, block.stop)
        stream.seek(start)
        read = stream.read(max(0, stop - start))
    try:
        text = read.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{block.path}, byte {start + error.start:,}: not UTF-8; text files are counted as UTF-8; "
            "save it as UTF-8 or leave it out"
        ) from None
    return block, sum(ExactCounter(encoding).many([*parts(text)]))


def _first_seam(stream: BinaryIO, block: Block, offset: int) -> int:
    """Return the first seam from an offset on, or the end of the file."""
    if offset == 0:
        return 0
    size = stream.seek(0, os.SEEK_END)
    at = offset - 1  # a seam is seen by the byte before it
    while at < min(size, offset + _FARTHEST):
        stream.seek(at)
        if found := _SEAM.search(stream.read(_WINDOW)):
            return at + found.start()
        at += _WINDOW - 1
    if at >= size:
        return size
    raise ValueError(
        f"{block.path}, byte {offset:,}: {_FARTHEST >> 20} MiB without a blank after a word; "
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
    characters: int = BLOCK,
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
        The cluster that counts; this process when left out.
    characters : int
        Code points of a batch; a document stays whole.

    Returns
    -------
    iterator of DataFrame
        Rows as :func:`budgetkit.accuracy.compare` gives them, in the documents' order; joined they are what it gives
        of all documents, but for the order of the counters' rows.

    Examples
    --------
    >>> several = (Document("Hello world", "prose", "en", "mine", str(i)) for i in range(3))
    >>> [len(rows) for rows in compare_stream(["chars/4"], several, characters=20)]
    [2, 1]
    """
    yield from answers(partial(_compared, counters=counters, exact=exact), _batches(documents, characters), client)


def _compared(batch: list[Document], counters: Sequence[Counter | str], exact: Counter | str) -> pd.DataFrame:
    return compare(counters, Corpus(tuple(batch)), exact)


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
