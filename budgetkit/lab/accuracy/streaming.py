"""Corpora larger than memory, counted in batches, locally or on a cluster.

A file is read in blocks that begin and end at seams, which no token crosses (:mod:`budgetkit.counters.exact`). The
exact counts of the blocks therefore add up to the count of the file. If a long stretch has no seam, the block extends
to the next seam and is counted in windows (:mod:`budgetkit.counters.stretches`). Counts are not stored, because the
texts do not recur.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count as count_from
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar

import pandas as pd

from budgetkit.budget import check_tokens
from budgetkit.counters import ExactCounter
from budgetkit.counters import counter as counter_of
from budgetkit.counters.exact import count_texts, last_seam, next_seam, split_at_seams
from budgetkit.counters.stretches import Read, count_stretch, text_at
from budgetkit.lab.accuracy import compare
from budgetkit.lab.accuracy.corpora import Corpus, Document
from budgetkit.lab.accuracy.corpora.opening import document_of
from budgetkit.lab.accuracy.errors import Given, progress_bar

T = TypeVar("T")
R = TypeVar("R")
_FEWEST = 4


class Client(Protocol):
    """The part of ``dask.distributed.Client`` used here."""

    def submit(self, function: Callable[..., Any], *values: Any, **options: Any) -> Any:
        """Call a function on a worker, and return a future."""
        ...

    def ncores(self) -> dict[str, int]:
        """Return each worker's number of threads."""
        ...


def completed_tasks(
    function: Callable[[T], R], tasks: Iterable[T], client: Client | None = None
) -> Iterator[R]:
    """Yield the results of tasks in order.

    If a client is given, the tasks run on its cluster.

    Examples
    --------
    >>> list(completed_tasks(len, iter(["one", "three"])))
    [3, 5]
    """
    if client is None:
        yield from map(function, tasks)
        return
    submitted = (client.submit(function, task, pure=False) for task in tasks)
    futures = deque(islice(submitted, max(_FEWEST, 2 * sum(client.ncores().values()))))
    while futures:
        yield futures.popleft().result()
        futures.extend(islice(submitted, 1))


#: Bytes of a file to count at a time; batches of documents have a quarter as many code points.
BLOCK = 4 << 20
_WINDOW = 1 << 16  # bytes that are searched for a seam at once
_FOLLOWING = bytes(range(0x80, 0xC0))  # all bytes of a character except the first
_BESIDE = 4  # bytes of the longest character before a seam


@dataclass(frozen=True)
class Block:
    """A byte range of a file, with ends that no token crosses."""

    path: str
    start: int
    stop: int


def count_files(
    paths: Iterable[str | os.PathLike[str]],
    counter: str | ExactCounter = "o200k_base",
    client: Client | None = None,
    progress: bool = False,
    block: int = BLOCK,
) -> pd.DataFrame:
    """Count the tokens of text files exactly, in bounded memory.

    Parameters
    ----------
    paths : iterable of str or path
        Paths of UTF-8 text files. On a cluster, the workers and this process must all be able to open the files.
    counter : str or ExactCounter
        An exact counter or its name.
    client : dask.distributed.Client, optional
        Client of a cluster; default: this process, on all cores.
    progress : bool
        If True, show a progress bar.
    block : int
        Number of bytes to count at a time, at least 1. A block extends to the next seam, a position that no token
        crosses.

    Returns
    -------
    DataFrame
        One row for each file, with the columns path, bytes and tokens.

    Raises
    ------
    ValueError
        If the counter is not exact, a file is not UTF-8, or the block size is below 1.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
    ...     _ = file.write("Hello world " * 1_000), file.flush()
    ...     count_files([file.name])[["bytes", "tokens"]].to_dict("list")
    {'bytes': [12000], 'tokens': [2001]}
    """
    exact_counter = counter_of(counter)
    if not isinstance(exact_counter, ExactCounter):
        raise ValueError(
            f"Counter '{exact_counter.name}' is not exact, so counts of blocks do not add up. Use an encoding such as "
            "'o200k_base', or compare_stream for estimates."
        )
    sizes = {str(path): Path(path).stat().st_size for path in paths}
    tokens = dict.fromkeys(sizes, 0)
    check_tokens("block size", block, 1)
    blocks = (part for path, size in sizes.items() for part in _blocks(path, size, block))
    whole = sum(sizes.values())
    ahead = 0 if client else whole
    counting = partial(count_block, encoding=exact_counter.encoding, ahead=ahead)
    bar = {"total": whole, "unit": "B", "unit_scale": True, "desc": "counting"}
    with progress_bar(progress, **bar) as advance:
        for block_task, count in completed_tasks(counting, blocks, client):
            tokens[block_task.path] += count
            advance(block_task.stop - block_task.start)
    return pd.DataFrame(
        {"path": [*sizes], "bytes": [*sizes.values()], "tokens": [*tokens.values()]}
    )


def count_block(block: Block, encoding: str, ahead: int = 0) -> tuple[Block, int]:
    """Count the tokens in one block of a file.

    The block is returned with its count.
    """
    at = tokens = 0
    with open(block.path, "rb") as stream, _named_file(block.path, block.start):
        read = _reading(stream, block.start, block.stop)
        while text := text_at(read, at, 2 * BLOCK):
            there_is_more = block.start + at + len(text.encode()) < block.stop
            end = last_seam(text, 0, len(text)) if there_is_more else len(text)
            if end == 0:
                rest = _reading(stream, block.start + at, block.stop)
                return block, tokens + count_stretch(encoding, rest)
            tokens += sum(count_texts(encoding, [*split_at_seams(text[:end])], ahead=ahead))
            at += len(text[:end].encode())
    return block, tokens


def _reading(stream: BinaryIO, start: int, stop: int) -> Read:
    def read(at: int, size: int) -> bytes:
        stream.seek(start + at)
        return stream.read(max(0, min(size, stop - start - at)))

    return read


def _blocks(path: str, size: int, block: int) -> Iterator[Block]:
    """Cut a file into blocks at seams, which no token crosses."""
    with open(path, "rb") as stream, _named_file(path, 0):
        start = 0
        while start < size:
            stop = _seam(_reading(stream, 0, size), start, min(start + block, size))
            yield Block(path, start, stop)
            start = stop


def _seam(read: Read, start: int, offset: int) -> int:
    """Return the position of the first seam at or after an offset.

    If there is no further seam, return the end of the file.
    """
    at = max(start, offset - _BESIDE)
    if at > start:
        before = read(at, _BESIDE)
        # Skip the remaining bytes of a character that begins earlier.
        at += len(before) - len(before.lstrip(_FOLLOWING))
    while len(text := text_at(read, at, _WINDOW)) > 1:
        seam = next_seam(text, 1, len(text) - 2)
        if seam is not None:
            return at + len(text[:seam].encode())
        at += len(text[:-1].encode())
    return at + len(text.encode())


@contextmanager
def _named_file(path: str, start: int) -> Iterator[None]:
    """Reraise a decoding error with the file's name and the byte position."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 at byte {start + error.start:,}. Save it as UTF-8."
        ) from None


def compare_stream(
    counters: Given | Sequence[Given],
    documents: Iterable[Document | str],
    exact: Given = "o200k_base",
    client: Client | None = None,
    progress: bool = False,
    characters: int = BLOCK // 4,
) -> Iterator[pd.DataFrame]:
    """Count the tokens of documents with every counter, batch by batch.

    Parameters
    ----------
    counters : Counter, callable or str, or a sequence of these
        One or several counters, functions or names. On a cluster, they must be picklable.
    documents : iterable of Document or str
        Documents or texts. The documents are read as needed, so together they may be larger than memory.
    exact : Counter or str
        The counter whose counts are the reference.
    client : dask.distributed.Client, optional
        Client of a cluster; default: this process.
    progress : bool
        If True, show a progress bar.
    characters : int
        Minimum size of a batch, in code points. Documents are not split.

    Returns
    -------
    iterator of DataFrame
        One frame for each batch, in the order of the documents. Joined, the frames equal the result of
        :func:`budgetkit.lab.accuracy.compare`, except for the order of the rows.

    Examples
    --------
    The files are read one at a time.

    >>> from budgetkit import corpora, files
    >>> paths = [files.data_path("corpora/" + name) for name in ("prose.txt", "code.txt")]
    >>> documents = (document for path in paths for document in corpora.folder(path))
    >>> pd.concat(compare_stream(["chars/4"], documents))["document"].tolist()
    ['prose.txt', 'code.txt']
    """
    with progress_bar(progress, unit="document", desc="comparing") as advance:
        compared = partial(_compared, counters=counters, exact=exact)
        batches = _batches(map(document_of, documents, count_from(1)), characters)
        for size, rows in completed_tasks(compared, batches, client):
            advance(size)
            yield rows


def _compared(
    batch: list[Document], counters: Given | Sequence[Given], exact: Given
) -> tuple[int, pd.DataFrame]:
    return len(batch), compare(counters, Corpus(tuple(batch)), exact)


def _batches(documents: Iterable[Document], characters: int) -> Iterator[list[Document]]:
    batch = []
    length = 0
    for document in documents:
        batch.append(document)
        length += len(document.text)
        if length >= characters:
            yield batch
            batch = []
            length = 0
    if batch:
        yield batch
