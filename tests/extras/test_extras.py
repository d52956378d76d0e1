"""The core works without the extras, and whoever meets one that is missing is told its name in one sentence."""

import ast
import json
import subprocess
import sys
import tomllib
import zipfile
from importlib import import_module
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import budgetkit
from budgetkit.extras.shell.program import COMMANDS
from budgetkit.files import extra

CHECKOUT = Path(__file__).parents[2]
EXTRAS: dict[str, list[str]] = tomllib.loads(
    (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
)["project"]["optional-dependencies"]


def without(*hidden: str, program: str) -> str:
    """Run a program in a Python to which some libraries are not installed; give what it prints."""
    hide = f"import sys; sys.modules.update(dict.fromkeys({hidden!r}))\n"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", hide + program], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


PLAN = "import budgetkit as bk; plan = bk.allocate(bk.presets.chat(8_192), {'history': 900})\n"
# A tokenizer file that only its own library can read.
WORD_PIECES = "import pathlib, tempfile; path = tempfile.mkdtemp() + '/tokenizer.json'\n"
WORD_PIECES += 'pathlib.Path(path).write_text(\'{"model": {"type": "WordPiece"}}\')\n'
MET = {
    "BudgetExplorer": ("lab", "ipywidgets", "import budgetkit as bk; bk.BudgetExplorer"),
    "BudgetExplorer without its view": ("lab", "anywidget", "import budgetkit as bk; bk.BudgetExplorer"),
    "BudgetExplorer from its package": ("lab", "ipywidgets", "from budgetkit.lab.explorers import BudgetExplorer"),
    "AccuracyExplorer": ("lab", "ipywidgets", "import budgetkit as bk; bk.AccuracyExplorer"),
    "ConversationExplorer": ("lab", "ipywidgets", "import budgetkit as bk; bk.ConversationExplorer"),
    "the served app": ("app", "voila", "import budgetkit.lab.app.serving"),
    "a figure": ("lab", "plotly", PLAN + "bk.figures.waterfall(plan)"),
    "a price": ("lab", "genai_prices", "import budgetkit as bk; bk.cost.prices('gpt-4o')"),
    "an endpoint": ("endpoints", "httpx", "from budgetkit.extras.endpoints import provider_counter"),
    "a tokenizer": ("makers", "tokenizers", WORD_PIECES + "import budgetkit as bk; bk.counter(path)('Hello')"),
}  # fmt: skip


#: What still works without a library: a program, and what it prints.
SPARED = {
    "a figure's table and plain data": (
        "plotly",
        PLAN + "print(len(bk.figures.waterfall.table(plan)), *bk.figures.waterfall.spec(plan))",
        "7 data layout",
    ),
    "a page": (
        "plotly",
        "import budgetkit as bk\n"
        "explorer = bk.BudgetExplorer('chat')\n"
        "explorer._receive(explorer.view, {'kind': 'plotly'}, [])\n"
        "print('budgetkit[lab]' in explorer.status)",
        "True",
    ),
    "progress": (
        "tqdm",
        "from budgetkit import corpora, streaming\n"
        "from budgetkit.lab.accuracy import compare\n"
        "documents = corpora.Corpus(corpora.shipped().documents[:3])\n"
        "print(len(compare(['chars/4'], documents)))\n"
        "print(sum(map(len, streaming.compare_stream(['chars/4'], documents.documents, progress=True))))\n"
        f"print(len(streaming.count_files([{str(CHECKOUT / 'README.md')!r}], progress=True)))",
        "3\n3\n1",
    ),
    "a model": (
        "genai_prices",
        "import warnings, budgetkit as bk\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    print(bk.model('gpt-4o').window, bk.model('no-such-model').window)\n"
        "print(str(caught[0].message).partition(' Pass')[0])",
        "128000 8192\nUnknown model 'no-such-model': "
        "a window of 8,192 tokens and cl100k_base are assumed.",
    ),
    "a bill": (
        "genai_prices",
        "import warnings, budgetkit as bk\n"
        "warnings.simplefilter('ignore')\n"
        "print(bk.Session(bk.load_trace('made-up-session')).price_gap)",
        "No price is known for claude-sonnet-4-5. Missing optional dependency 'genai-prices', which the cost needs. "
        "Run: pip install 'budgetkit[lab]'.",
    ),
}


@pytest.fixture(scope="module")
def printed() -> dict[str, str]:
    """Run all programs in four Pythons; give what each prints, or the sentence that it ends in."""
    programs = {name: (library, program) for name, (_, library, program) in MET.items()}
    programs |= {name: (library, program) for name, (library, program, _) in SPARED.items()}
    answers: dict[str, str] = {}
    for alone in ("ipywidgets", "anywidget", "plotly", ""):
        here = {
            name: program
            for name, (library, program) in programs.items()
            if alone == (library if library in ("ipywidgets", "anywidget", "plotly") else "")
        }
        hidden = {library for name, (library, _) in programs.items() if name in here}
        program = f"""
import contextlib, io, json
answers = {{}}
for name, program in {here!r}.items():
    with contextlib.redirect_stdout(io.StringIO()) as said:
        try:
            exec(program, {{}})
        except ImportError as problem:
            print(problem)
    answers[name] = said.getvalue().strip()
print(json.dumps(answers))
"""
        answers |= json.loads(without(*hidden, program=program))
    return answers


@pytest.mark.parametrize(("name", "extra", "library"), [(k, *v[:2]) for k, v in MET.items()])
def test_a_missing_extra_is_one_sentence_that_names_it(
    printed: dict[str, str], name: str, extra: str, library: str
) -> None:
    sentence = f"needs. Run: pip install 'budgetkit[{extra}]'"
    assert f"Missing optional dependency {library!r}, which " in printed[name]
    assert printed[name].endswith(sentence)
    assert "\n" not in printed[name]
    assert library.replace("_", "-") in {Requirement(each).name for each in EXTRAS[extra]}


@pytest.mark.parametrize("name", SPARED)
def test_what_needs_no_extra_works_without_it(printed: dict[str, str], name: str) -> None:
    assert printed[name] == SPARED[name][-1]


NO_EXTRA = (
    *("IPython", "anyio", "anywidget", "dask", "distributed", "genai_prices", "httpx"),
    *("ipywidgets", "jupyterlab", "openpyxl", "plotly", "pyarrow", "tokenizers", "tqdm"),
    *("traitlets", "voila", "zstandard"),
)
LAB, APP = "Run: pip install 'budgetkit[lab]'", "Run: pip install 'budgetkit[app]'"
NO_COSTS = (
    "Note: Costs in dollars are not available: "
    "Missing optional dependency 'genai_prices', which a price list needs. "
)
COMMANDS_WITHOUT_EXTRAS: dict[str, str] = {
    "": "Next steps:",
    "sessions": "budgetkit sessions ",
    "sessions made-up-session": NO_COSTS,
    "sessions made-up-session --tools": "Which tool results filled the prompts?",
    "sessions made-up-session --report {tmp}/page.html": LAB,
    "sessions made-up-session --lab": APP,
    "count -t Hello": "1 token (o200k_base)",
    "count -t Hello --ways": "Ways of counting",
    "count -t Hello -m gpt-4o --ask openai": "Run: pip install 'budgetkit[endpoints]'",
    "count {tmp}/chat.zst --as conversation": LAB,
    "fit {tmp}/chat.xlsx": LAB,
    "fit {tmp}/chat.parquet": LAB,
    "fit support-chat": "a window of",
    "check support-chat": "The check passed",
    "replay support-chat --price gpt-4o": NO_COSTS,
    "compare support-chat -p octopus -m gpt-4o": NO_COSTS,
    "models gpt-4o": "128,000",
    "redact support-chat": '"role"',
    "report support-chat -o {tmp}/report.html": LAB,
    "explore support-chat": APP,
    "notebook 00 {tmp}": "run: pip install 'budgetkit[jupyter]'",
}


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Run every command in one Python without extras; give what each prints."""
    folder = tmp_path_factory.mktemp("without")
    for name in ("chat.zst", "chat.parquet"):
        first = {"chat.zst": b"\x28\xb5\x2f\xfd", "chat.parquet": b"PAR1"}[name]
        (folder / name).write_bytes(first + b"\x00" * 40 + first)
    with zipfile.ZipFile(folder / "chat.xlsx", "w") as book:
        book.writestr("xl/workbook.xml", "<workbook/>")
    lines = [line.replace("{tmp}", str(folder)) for line in COMMANDS_WITHOUT_EXTRAS]
    program = f"""
import contextlib, io, json, traceback
from budgetkit.extras.shell.program import run
spoken = []
for line in {lines!r}:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            run(line.split())
        except BaseException:
            traceback.print_exc()
    spoken.append(said.getvalue())
print(json.dumps(spoken))
"""
    answers = json.loads(without(*NO_EXTRA, program=program).splitlines()[-1])
    return dict(zip(COMMANDS_WITHOUT_EXTRAS, answers, strict=True))


@pytest.mark.parametrize(("line", "sentence"), COMMANDS_WITHOUT_EXTRAS.items())
def test_a_command_without_extras_works_or_says_in_one_sentence_what_to_type(
    spoken: dict[str, str], line: str, sentence: str
) -> None:
    """On 0.3.0 every command of a plain install ended in "needs click", and `explore` in a traceback."""
    said = spoken[line]
    assert sentence in said
    assert "Traceback" not in said
    if "Error: " in said:
        assert said.count("\n") == 1 and said.endswith("'\n")


def test_every_command_is_tried_without_extras() -> None:
    assert {*COMMANDS} <= {line.partition(" ")[0] for line in COMMANDS_WITHOUT_EXTRAS}


def test_every_public_name_is_there_without_the_laboratory_or_says_what_it_needs() -> None:
    program = (
        "import budgetkit as bk\n"
        "for package in (bk, bk.figures):\n"
        "    for name in package.__all__:\n"
        "        try:\n"
        "            getattr(package, name)\n"
        "        except ImportError as problem:\n"
        "            print(name, problem)\n"
    )
    laboratory = (
        *("IPython", "anywidget", "genai_prices", "ipywidgets", "jupyterlab", "plotly"),
        *("tqdm", "traitlets"),
    )
    said = dict(line.split(" ", 1) for line in without(*laboratory, program=program).splitlines())
    assert said.keys() >= {"BudgetExplorer", "AccuracyExplorer", "ConversationExplorer"}
    assert [
        line
        for line in said.values()
        if not line.endswith(" needs. Run: pip install 'budgetkit[lab]'")
    ] == []
    assert {"Budget", "replay", "truncate", "policies", "state"} & said.keys() == set()


def test_what_is_broken_is_not_called_missing() -> None:
    """Only a library that is not there names an extra; an error inside one is shown as it is."""
    with (
        pytest.raises(ModuleNotFoundError, match="No module named 'budgetkit.nothing'"),
        extra("lab", "it"),
    ):
        import_module("budgetkit.nothing")
    with pytest.raises(ZeroDivisionError), extra("lab", "it"):
        print(1 / 0)
    sentence = (
        "^Missing optional dependency 'nobody', which it needs. Run: pip install 'budgetkit.lab.'$"
    )
    with pytest.raises(ImportError, match=sentence):  # noqa: SIM117
        with extra("lab", "it"):
            import_module("nobody.inside")


def calls() -> list[tuple[Path, str]]:
    """List where the package names an extra, and which."""
    found = []
    for path in Path(budgetkit.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "extra(" not in text and "missing(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("extra", "missing")
            ):
                named = node.args[node.func.id == "missing"]
                found += [(path, str(named.value))] if isinstance(named, ast.Constant) else []
    return found


def test_every_extra_that_is_named_exists() -> None:
    named = calls()
    assert len(named) >= 8
    assert [(path, name) for path, name in named if name not in EXTRAS] == []
