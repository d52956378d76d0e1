"""Spellings of a model's name, as hosts, routers and users write it.

Only parts that state the host or the variant are removed. The parts that identify the model are kept.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher, get_close_matches
from functools import cache, lru_cache
from typing import Final
from urllib.parse import unquote

from budgetkit.files import read_rows, read_table, read_toml

#: The default encoding of OpenAI's families.
FAMILY_ENCODING: Final = "o200k_base"
_SHARED = 4  # consecutive characters that similar names have in common
LONGEST_NAME: Final = 200  # characters; searching for a longer name is slow and finds nothing
_BETWEEN = re.compile(r"[-_.:@ ]+")
_REGION = r"(?:(?:us|us-gov|eu|apac|global|jp|au|ca|in)\.)?"
_MAKERS = (
    "anthropic|amazon|meta|mistral|cohere|ai21|deepseek|openai|qwen|google|writer|nvidia|moonshotai|moonshot|minimax|"
    "zai|xai"
)
_BEDROCK = re.compile(rf"^{_REGION}(?:{_MAKERS})\.")
# Prefixes for the place where a model runs: Bedrock's region and maker, Databricks, SAP's maker.
_PLACE = re.compile(rf"{_BEDROCK.pattern}|^databricks-|^[a-z]+--")
_COPY = re.compile(r"-v\d+(?::\d+)?(?::\d+k)?$")  # the copy of a model that Bedrock runs
# The same, but only if the suffix cannot be a version, as it is in deepseek-v5: a bare "-v1" marks a copy of nova-pro,
# but not of nova.
_CERTAIN_COPY = re.compile(r"(?:-v\d+:\d+(?::\d+k)?|(-[a-z]+)-v[12])$")
# Suffixes that never distinguish models: date, release, routing, thinking effort, number format.
_SUFFIX = re.compile(
    r"(?:\[[^\[\]]*\]|(?:(?<=opus-\d)|(?<=opus-\d[.-]\d))-fast|:[a-z][a-z-]*|[-:]v?\d+:\d+(?::\d+k)?|(?<![-:])[-:]+(?:"
    r"20\d\d-?[01]\d-?[0-3]\d|[01]\d-20\d\d|[01]\d-?[0-3]\d|00\d|latest|preview|exp|experimental|default|stable|"
    r"beta|thinking|cloud|maas|versatile|tput|none|minimal|low|medium|high|xhigh|"
    r"fp8|fp4|nvfp4|bf16|int4|int8|awq|gptq|gguf))$"
)
_UNDATED = re.compile(r"-(?:preview|latest|[01]\d-20\d\d)$")  # often left out of a listed name
_VERSION_FIRST = re.compile(r"^claude-(\d)(?:[.-](\d))?-([a-z]+)")  # OpenRouter's claude-4.6-sonnet
_VERSION_LAST = re.compile(r"^claude-([a-z]+)-(3)(?:[.-](\d)(?!\d))?")
_KIND = re.compile(r"[-_:](?:instruct|chat|it|hf)\b")
# Ollama writes sizes as tags.
_OLLAMA = re.compile(r"^[a-z0-9.-]+:(?:latest|\d+(?:\.\d+)?[bm](?:-[a-z0-9_.-]+)?)$|^qwen\d$")
#: Hosts that run other makers' models or forward requests, by the part of a name before the slash.
_HOSTS = (
    "openrouter",
    "azure",
    "azure_ai",
    "bedrock",
    "vertex_ai",
    "groq",
    "together_ai",
    "fireworks_ai",
    "ollama",
)


def as_listed(name: str) -> str:
    """Convert a name to the spelling of ``data/models.csv``, keeping its path.

    Names are compared without separators. All tables keyed by model names use this spelling. A name of more than 200
    characters, which no model has, is shortened and loses its path.

    Examples
    --------
    >>> as_listed("gpt4o"), as_listed("openai/GPT_4o-mini-2024-07-18"), as_listed("claude-sonnet-4.5")
    ('gpt-4o', 'openai/gpt-4o-mini-2024-07-18', 'claude-sonnet-4-5')
    """
    if len(name) > LONGEST_NAME:
        # Some patterns of the tables take quadratic time. The remaining name is still too long for a known model.
        return name.strip().casefold().rpartition("/")[2][: LONGEST_NAME + 1]
    return _as_listed(name)


@lru_cache(maxsize=1024)
def _as_listed(name: str) -> str:
    """Replace a name's longest listed beginning with the listed spelling.

    If no beginning of the name is listed, only the host is removed.
    """
    path, slash, last = name.strip().casefold().rpartition("/")
    for text in _ways_to_write(last):
        ends = [place.start() for place in _BETWEEN.finditer(text)]
        for end in [len(text), *reversed(ends)]:
            listed_model = _listed_letters().get(_letters(text[:end]))
            if listed_model is not None:
                rest = text[end:].replace("_", "-")
                return f"{path}{slash}{listed_model}{rest}"
    return f"{path}{slash}{next(_ways_to_write(last))}"


def _ways_to_write(last: str) -> Iterator[str]:
    """Yield spellings of a name without the host.

    A Claude model's name is also yielded with the version and the tier in the listed order.
    """
    if _letters(last) in _listed_letters():
        yield last
    place = _PLACE.match(last)
    text = last
    if place:
        text = last[place.end() :]
        if _BEDROCK.match(last):
            text = _COPY.sub("", text)
    text = re.sub(r"(?<=\d)p(?=\d)", ".", text)  # Fireworks writes a point as "p"
    text = re.sub(r"^llama-v(?=\d)", "llama-", text).replace("@", "-")
    yield text
    kind_first = _VERSION_FIRST.sub(r"claude-\3-\1-\2", text).replace("--", "-").rstrip("-")
    yield kind_first
    yield _VERSION_LAST.sub(r"claude-\2-\3-\1", text).replace("--", "-")


@cache
def _listed_letters() -> Mapping[str, str]:
    """Map names without separators to listed names, if they are unambiguous."""
    names = [row["name"].casefold() for row in read_table("models.csv")]
    often = Counter(map(_letters, names))
    return {_letters(name): name for name in names if often[_letters(name)] == 1}


@cache
def _listed_cores() -> Mapping[str, str]:
    """Map short spellings to listed names, preferring the shortest name."""
    names = sorted((row["name"].casefold() for row in read_table("models.csv")), key=len)
    cores: dict[str, str] = {}
    for shorten in (_letters, core_name, lambda name: _letters(_UNDATED.sub("", name))):
        for name in names:
            cores.setdefault(shorten(name), name)
    return cores


def spelled_model(name: str) -> str:
    """Return the listed name for a spelling, or "" if unlisted.

    Examples
    --------
    >>> [spelled_model(name) for name in ("claude-opus-4-8[1m]", "vertex_ai/claude-sonnet-4-5@20250929", "gpt-4-omega")]
    ['claude-opus-4-8', 'claude-sonnet-4-5', '']
    """
    cores = _listed_cores()
    written = (
        cores.get(key)
        for text in without_suffixes(bare(name))
        for key in (_letters(text), core_name(text))
    )
    return next(filter(None, written), "")


def without_suffixes(name: str) -> Iterator[str]:
    """Yield a name and its shorter forms, removing suffixes one by one.

    Only suffixes that never distinguish models are removed.

    Examples
    --------
    >>> list(without_suffixes("gemini-2.5-flash-preview-09-2025"))
    ['gemini-2.5-flash-preview-09-2025', 'gemini-2.5-flash-preview', 'gemini-2.5-flash']
    """
    yield name
    while len(name) <= LONGEST_NAME and (shorter := _SUFFIX.sub("", name)) not in (name, ""):
        name = shorter
        yield name


def is_spelling(name: str, other: str) -> bool:
    """Return True if two names are spellings of one model's name.

    >>> is_spelling("openai/gpt-4o-2024-08-06", "gpt-4o"), is_spelling("gpt-4o-mini", "gpt-4o")
    (True, False)
    """
    cores, other_cores = (
        set(map(core_name, without_suffixes(bare(text)))) for text in (name, other)
    )
    return not cores.isdisjoint(other_cores)


def neighbour(name: str) -> str:
    """Return the longest listed name that a name extends, or "".

    An extension that begins with a digit probably names a new version of the model, so it does not count.

    Examples
    --------
    >>> neighbour("gpt-6-sol-quantum"), neighbour("claude-opus-4-99")
    ('gpt-6-sol', '')
    """
    bare_name = bare(name)[:LONGEST_NAME]
    ends = [place.start() for place in re.finditer(r"-(?!\d)", bare_name)]
    beginnings = (_listed_letters().get(_letters(bare_name[:end])) for end in reversed(ends))
    return next(filter(None, beginnings), "")


def _letters(name: str) -> str:
    return _BETWEEN.sub("", name)


def bare(name: str) -> str:
    """Return a name in listed spelling without its path.

    The bare name of a fine-tuned model is that of its base model.

    Examples
    --------
    >>> bare("openrouter/OpenAI/GPT-4o"), bare("ft:gpt-4o-2024-08-06:org::id"), bare("gpt4o")
    ('gpt-4o', 'gpt-4o-2024-08-06', 'gpt-4o')
    """
    return as_listed(_last(name))


def _last(name: str) -> str:
    """Return a lower-case name without its path.

    For a fine-tuned model, return the name of the base model.
    """
    last = unquote(name.strip()).rpartition("/")[2].casefold()
    if last.startswith("ft:"):
        return last.split(":")[1]
    return last


def host_of(name: str) -> str:
    """Return the host that a model's name states, or "".

    A host runs the model or forwards requests to it.

    Examples
    --------
    >>> [host_of(name) for name in ("us.anthropic.claude-sonnet-4-5-v1:0", "openrouter/openai/gpt-4o", "openai/gpt-4o")]
    ['bedrock', 'openrouter', '']
    """
    plain_name = name.strip().casefold()
    first = plain_name.partition("/")[0]
    if "/" in plain_name and first in _HOSTS:
        return first
    if plain_name == "gpt-35-turbo":  # Azure's spelling
        return "azure"
    if _OLLAMA.match(plain_name):
        return "ollama"
    if _BEDROCK.match(_last(name)):
        return "bedrock"
    return ""


@lru_cache(maxsize=256)
def openai_family(name: str) -> str:
    """Return an OpenAI model's family, or "" for other makers' models.

    Examples
    --------
    >>> [openai_family(name) for name in ("gpt-4", "gpt-4o-mini", "o3", "claude-2")]
    ['gpt-4-0613', 'gpt-4o', 'o', '']
    """
    plain = bare(name)
    if (
        _last(name) == "gpt-35-turbo"
    ):  # on Azure; three recorded calls were billed like that snapshot
        plain = "gpt-3.5-turbo-0301"
    for pattern, family in read_toml("framings.toml")["models"]["families"]:
        if re.match(pattern, plain):
            return str(family)
    return ""


def family_encoding(name: str) -> tuple[str, bool]:
    """Return a model's OpenAI encoding, and whether it is published.

    For another maker's model, the encoding is "".

    Examples
    --------
    >>> family_encoding("chatgpt-4o-latest"), family_encoding("gpt-9"), family_encoding("claude-2")
    (('o200k_base', True), ('o200k_base', False), ('', False))
    """
    family = openai_family(name)
    if not family:
        return "", False
    encoding = str(read_rows("framings.toml", "family")[family].get("encoding", FAMILY_ENCODING))
    unpublished = read_toml("framings.toml")["models"]["unpublished_encoding"]
    return encoding, re.match(unpublished, bare(name)) is None


def dashed(name: str) -> str:
    """Replace a name's punctuation with dashes, as the tables' patterns expect."""
    return re.sub(r"[.:_]", "-", as_listed(name))


@lru_cache(maxsize=256)
def calibration_row(name: str) -> dict[str, str]:
    """Return the row of ``data/calibrations.csv`` for a model.

    The result is the first row whose pattern matches the name.

    Examples
    --------
    >>> calibration_row("us.anthropic.claude-sonnet-4-5")["family"], calibration_row("x")["family"]
    ('claude-4.5', 'any other')
    """
    rows = read_table("calibrations.csv")  # whose last row is for all other models
    return next(row for row in rows if re.search(row["pattern"], dashed(name)))


def spellings(name: str) -> Iterator[str]:
    """Yield other spellings of a model's name, the closest first.

    Examples
    --------
    >>> list(spellings("us.anthropic.claude-sonnet-4-5-20250929-v1:0"))
    ['claude-sonnet-4-5-20250929', 'claude-sonnet-4-5']
    >>> list(spellings("gpt4o")), "claude-sonnet-4-6" in spellings("anthropic/claude-4.6-sonnet-20260217")
    (['gpt-4o'], True)
    """
    last = _last(name)
    names = [
        spelling
        for text in (bare(name), *_ways_to_write(last))
        for spelling in without_suffixes(text)
    ]
    apart = [re.sub(r"^([a-z]+)(?=\d)", r"\1-", spelling.replace(":", "-")) for spelling in names]
    names += apart
    names += [spelling.replace(".", "-") for spelling in names]
    for spelling in dict.fromkeys(names):
        if spelling != last:
            yield spelling


@lru_cache(maxsize=4096)  # the price list has about 1,500 names
def core_name(name: str) -> str:
    """Return a name's lower-case letters and digits.

    Region, variant and words such as "instruct" are removed.

    Examples
    --------
    >>> core_name("meta.llama3-1-8b-instruct-v1:0"), core_name("llama3.1:8b"), core_name("meta-llama/Llama-3.1-8B")
    ('llama318b', 'llama318b', 'llama318b')
    """
    core = _CERTAIN_COPY.sub(r"\1", re.sub(r":[a-z-]+$", "", bare(name)))
    return re.sub(r"[^a-z0-9]", "", _KIND.sub("", core))


def nearest_names(name: str, names: Iterable[str], most: int = 4) -> list[str]:
    """Return the names most similar to an unknown name.

    Names that contain the unknown name come first.

    Examples
    --------
    >>> nearest_names("claud", ["gpt-4o", "claude-haiku-4-5", "claude-opus-5"])
    ['claude-opus-5', 'claude-haiku-4-5']
    """
    name = name[:200]  # a longer name is similar to none, and slow to compare
    wanted = core_name(name)
    plain_names = {candidate: core_name(candidate) for candidate in names}

    # Names that contain the wanted one come first, starting with the shortest.
    longer = [
        candidate
        for candidate, plain_name in plain_names.items()
        if wanted and wanted in plain_name
    ]
    longer.sort(key=lambda candidate: len(plain_names[candidate]))
    if len(longer) >= most:
        return longer[:most]

    # Similar names follow; if some names contain the wanted one, those that share a few letters with it come first.
    similar = get_close_matches(bare(name), plain_names, most, 0.5)
    sharing = [
        candidate
        for candidate in similar
        if not longer
        or SequenceMatcher(None, wanted, plain_names[candidate]).find_longest_match().size
        >= _SHARED
    ]
    return list(dict.fromkeys([*longer, *sharing, *similar]))[:most]
