"""What reaches a user: a wheel that works on its own, an environment file that agrees, a clean repository."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from email import message_from_bytes
from email.message import Message
from hashlib import sha256
from importlib import import_module
from importlib.metadata import Distribution, distribution, distributions
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from rattler import MatchSpec

import budgetkit as bk

CHECKOUT = Path(__file__).parents[2]
LARGEST_FILE = 3_000_000  # bytes

USE_IT = """
import json, socket

def refuse(*address, **options):
    raise AssertionError(f"the network is shut, and something asked for {address}")

socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse

import budgetkit as bk

sections = [bk.Allocation("system", cap=100), bk.Allocation("history")]
budget = bk.Budget(1_000, reserves=[bk.Reserve("output", 200)], allocations=sections)
plan = bk.allocate(budget, {"system": 60, "history": 900})
print(json.dumps({
    "version": bk.__version__,
    "home": bk.__file__,
    "exact": bk.counter("gpt-4o")("Hello world"),
    "rough": bk.counter("chars/4")("Hello world, here I am"),
    "window": bk.model("gpt-4o").window,
    "history": plan["history"].granted,
}))
"""


def run(*command: str | Path, cwd: Path = CHECKOUT) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder)
    return next(folder.glob("budgetkit-*.whl"))


@pytest.fixture(scope="module")
def elsewhere(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel into an environment of its own, beside this one's packages; give its Python."""
    python, packages = fresh(tmp_path_factory.mktemp("elsewhere"))
    run(
        sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-deps", wheel
    )
    # A path file is not followed through another one, so this environment's editable budgetkit stays unseen.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return python


def test_the_wheel_works_elsewhere_without_a_network(elsewhere: Path, tmp_path: Path) -> None:
    said = json.loads(run(elsewhere, "-I", "-c", USE_IT, cwd=tmp_path))
    assert CHECKOUT not in Path(said.pop("home")).parents
    assert said == {
        "version": project()["version"],
        "exact": 2,
        "rough": 5,
        "window": 128_000,
        "history": 740,
    }


USE_THE_CORE = """
import json, socket, warnings

def refuse(*address, **options):
    raise AssertionError(f"the network is shut, and something asked for {address}")

socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
warnings.simplefilter("error")

import budgetkit as bk

exact, trace = bk.counter("gpt-4o"), bk.load_trace("support-chat")
budget = bk.presets.working_memory(8_000, output=1_024)
plan = bk.fit(budget, trace.items(turn=60, counter=exact))
pruned = bk.replay(trace, budget, bk.policies.OldestFirst(), counter=exact)
absent = []
for name in ("BudgetExplorer", "AccuracyExplorer", "ConversationExplorer"):
    try:
        getattr(bk, name)
    except ImportError as problem:
        absent.append(str(problem).rpartition(". ")[2])
print(json.dumps({
    "home": bk.__file__,
    "history": [plan["history"].granted, plan["history"].cut],
    "again": bk.state.from_yaml(bk.state.to_yaml(budget)) == budget,
    "cut": exact(bk.truncation.truncate("Hello world, here I am. " * 50, 20, exact)),
    "messages": len(bk.conversation.assembly.messages(plan)),
    "dropped": sum(pruned.kept.dropped_messages),
    "absent": absent,
}))
"""


def installed_for(requirements: list[str], absent_too: bool = False) -> list[Distribution]:
    """List the installed libraries that requirements come to, those that they need among them."""
    found: dict[str, Distribution] = {}
    waiting = [*map(Requirement, requirements)]
    while waiting:
        asked = waiting.pop()
        name = canonicalize_name(asked.name)
        if name in found or (asked.marker and not asked.marker.evaluate({"extra": ""})):
            continue
        if absent_too and not any(distributions(name=name)):
            continue
        found[name] = distribution(name)
        waiting += map(Requirement, found[name].requires or [])
    return [*found.values()]


@pytest.fixture(scope="module")
def core(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel without extras into an environment that holds nothing but what it needs; give its Python.

    What it needs is linked from this environment, so that the network is not asked; pip checks that it is enough.
    """
    python, packages = fresh(tmp_path_factory.mktemp("core"))
    for library in installed_for(project()["dependencies"]):
        for top in {file.parts[0] for file in library.files or []} - {"..", "__pycache__"}:
            (packages / top).symlink_to(str(library.locate_file(top)))
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-index", wheel)
    return python


def fresh(home: Path) -> tuple[Path, Path]:
    """Make an empty environment; give its Python and the folder of its packages."""
    venv.create(home, with_pip=False)
    places = {"base": str(home), "platbase": str(home)}
    python = Path(sysconfig.get_path("scripts", "venv", places)) / Path(sys.executable).name
    return python, Path(sysconfig.get_path("purelib", "venv", places))


def test_the_core_alone_plans_and_prunes_without_a_network(core: Path, tmp_path: Path) -> None:
    said = json.loads(run(core, "-I", "-c", USE_THE_CORE, cwd=tmp_path))
    assert CHECKOUT not in Path(said.pop("home")).parents
    trace, budget = bk.load_trace("support-chat"), bk.presets.working_memory(8_000, output=1_024)
    dropped = sum(
        bk.replay(
            trace, budget, bk.policies.OldestFirst(), counter=bk.counter("gpt-4o")
        ).kept.dropped_messages
    )
    assert dropped > 50
    assert said == {
        "history": [5_838, 1_679],
        "again": True,
        "cut": 20,
        "messages": 98,
        "dropped": dropped,
        "absent": 3 * ["Run: pip install 'budgetkit[lab]'"],
    }


def test_the_core_brings_no_notebook_no_figures_and_no_test_library(core: Path) -> None:
    lab = {
        canonicalize_name(Requirement(each).name)
        for each in project()["optional-dependencies"]["lab"]
    }
    brought = {
        canonicalize_name(library.name) for library in installed_for(project()["dependencies"])
    }
    assert len(lab) == 8
    assert brought & {*lab, "pytest", "nbval", "traitlets", "ipython"} == set()
    expected = "No broken requirements found."
    assert run(sys.executable, "-m", "pip", "--python", core, "check").strip() == expected


def test_the_wheel_carries_the_data_the_types_and_the_licence(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    data = {
        f"budgetkit/{path.relative_to(CHECKOUT).as_posix()}"
        for path in (CHECKOUT / "data").rglob("*")
        if path.is_file()
    }
    code = {
        path.relative_to(CHECKOUT).as_posix()
        for path in (CHECKOUT / "budgetkit").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert len(data) > 1
    assert names >= data | code
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.startswith(("tests/", "notebooks/")) for name in names)
    notebooks = {
        path.name: path.stat().st_size for path in (CHECKOUT / "notebooks").glob("*.ipynb")
    }
    assert names >= {f"budgetkit/notebooks/{name}" for name in notebooks}
    assert sum(notebooks.values()) < 300_000
    assert "budgetkit/scripts/lab/budgetkit-start/static/start.js" in names


def built(source: Path, folder: Path) -> dict[str, str]:
    """Build wheel and sdist of a source tree; give the SHA-256 of what comes out, by name."""
    date = {**os.environ, "SOURCE_DATE_EPOCH": "1767225600"}
    command = (sys.executable, "-m", "build", "--no-isolation", "--outdir", folder)
    done = subprocess.run(command, cwd=source, env=date, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def test_wheel_and_sdist_are_the_same_to_the_bit_however_built(tmp_path: Path) -> None:
    """The second build is of the unpacked sdist: in another folder, with other times, read by its owner alone."""
    first = built(CHECKOUT, tmp_path / "first")
    sdist, wheel = sorted(first, key=len)
    with tarfile.open(tmp_path / "first" / sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    source = tmp_path / sdist.removesuffix(".tar.gz")
    for path in source.rglob("*"):
        path.chmod(path.stat().st_mode & 0o700)
        os.utime(path, (1e9, 1e9))
    assert wheel.endswith(".whl")
    assert built(source, tmp_path / "second") == first


def test_no_library_that_budgetkit_brings_lacks_or_contradicts_another() -> None:
    """As `pip check` says; what else an environment holds is not ours to judge."""
    ours = {
        canonicalize_name(library.name)
        for library in installed_for(every_requirement(), absent_too=True)
    } | {"budgetkit"}
    done = subprocess.run(
        [sys.executable, "-m", "pip", "check"], cwd=CHECKOUT, capture_output=True, text=True
    )
    assert len(ours) > 50, done.stderr
    assert [
        line for line in done.stdout.splitlines() if canonicalize_name(line.split()[0]) in ours
    ] == []


def pyproject() -> dict[str, Any]:
    return tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))


def project() -> dict[str, Any]:
    content: dict[str, Any] = pyproject()["project"]
    return content


def group(name: str) -> list[str]:
    """List what a dependency group names, without the groups that it includes."""
    entries = pyproject()["dependency-groups"][name]
    return [entry for entry in entries if isinstance(entry, str)]


def every_requirement() -> list[str]:
    """List what the package needs, with every extra and group but the peers of the benchmarks."""
    extras = chain(*project()["optional-dependencies"].values())
    groups = chain(*(group(name) for name in pyproject()["dependency-groups"] if name != "peers"))
    return [*project()["dependencies"], *extras, *groups]


def conda_environment() -> tuple[list[str], list[str]]:
    """Read environment.yml: its conda packages, and those it leaves to pip."""
    content = yaml.safe_load((CHECKOUT / "environment.yml").read_text(encoding="utf-8"))
    assert content["channels"] == ["conda-forge", "nodefaults"]
    conda = [entry for entry in content["dependencies"] if isinstance(entry, str)]
    (pip,) = [entry["pip"] for entry in content["dependencies"] if isinstance(entry, dict)]
    return conda, pip


def bounds(requirements: list[str]) -> dict[str, str]:
    parsed = map(Requirement, requirements)
    return {requirement.name.lower(): str(requirement.specifier) for requirement in parsed}


def test_conda_users_get_the_core_the_laboratory_and_what_runs_the_tests() -> None:
    conda, pip = conda_environment()
    shared = [entry for entry in conda if entry not in ("python=3.12", "pip")]
    assert len(shared) == len(conda) - 2
    assert "-e ." in pip
    extras = project()["optional-dependencies"]
    jupyter = [entry for entry in extras["jupyter"] if Requirement(entry).name != "budgetkit"]
    tests = [entry for entry in group("dev") if Requirement(entry).name in ("pytest", "nbval")]
    wanted = bounds([*project()["dependencies"], *extras["lab"], *jupyter, *tests])
    assert bounds(shared + [entry for entry in pip if entry != "-e ."]) == wanted
    assert wanted.keys() >= {
        *("jupyterlab", "ipywidgets", "pandas", "plotly", "tiktoken", "pytest", "nbval")
    }


def test_conda_understands_every_line_of_the_environment() -> None:
    conda, _ = conda_environment()
    names = {spec.name.normalized for spec in map(MatchSpec, conda) if spec.name}
    assert len(names) == len(conda)
    with pytest.raises(Exception, match="=>"):
        MatchSpec("pandas=>2.2")


def test_every_dependency_has_a_lower_bound_or_is_pinned() -> None:
    for requirement in map(Requirement, [*every_requirement(), *group("peers")]):
        bounded = {bound.operator for bound in requirement.specifier} & {">=", "=="}
        assert (
            bounded or requirement.name == "budgetkit" or requirement.name.startswith("types-")
        ), requirement


def test_every_library_stands_with_what_it_is_here_for() -> None:
    """In a comment beside it, or above the extra; types of another library are told of beside mypy."""
    lines = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    for requirement in [*every_requirement(), *group("peers")]:
        name = Requirement(requirement).name
        if name == "budgetkit" or name.startswith("types-") or name.endswith("-stubs"):
            continue
        places = [
            at
            for at, line in enumerate(lines)
            if f'"{requirement.partition(";")[0].strip()}' in line
        ]
        assert any(
            "#" in lines[at].rpartition('"')[2] or lines[at - 1].startswith("#") for at in places
        ), requirement


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    if not shutil.which("git") or not (CHECKOUT / ".git").exists():
        pytest.skip("what is committed can only be told in a git checkout")
    names = run("git", "ls-files", "-z").split("\0")
    return [path for name in names if name and (path := CHECKOUT / name).is_file()]


# In pieces, for this file is read too.
HOSTS = [
    *("pypi org", "pythonhosted org", "registry npmjs", "registry yarnpkg"),
    *("anaconda org", "deb debian org"),
]
HOSTS += ["proxy golang org", "crates io"]
REGISTRIES = re.compile("|".join(re.escape(host.replace(" ", ".")) for host in HOSTS).encode())
LOCKS = re.compile(r".*\.lock|.*-lock\.(json|ya?ml)|npm-shrinkwrap\.json")


def test_no_committed_file_names_the_host_of_a_registry(tracked: list[Path]) -> None:
    assert [path for path in tracked if REGISTRIES.search(path.read_bytes())] == []
    assert REGISTRIES.search(b"https://files." + b"pythonhosted" + b".org/packages/")


def test_no_lock_file_is_committed(tracked: list[Path]) -> None:
    assert [path for path in tracked if LOCKS.fullmatch(path.name)] == []
    assert LOCKS.fullmatch("uv.lock")
    assert LOCKS.fullmatch("package-lock.json")


def test_no_state_of_a_widget_is_committed(tracked: list[Path]) -> None:
    for path in tracked:
        if path.suffix == ".ipynb":
            assert "widgets" not in json.loads(path.read_text(encoding="utf-8"))["metadata"], path


def test_no_committed_file_is_large(tracked: list[Path]) -> None:
    assert {
        path.name: size for path in tracked if (size := path.stat().st_size) > LARGEST_FILE
    } == {}


def test_the_readme_shows_the_two_commands() -> None:
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    assert "make lab" in readme
    assert "make test" in readme


def test_the_readme_says_what_each_extra_adds() -> None:
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"(?:\.|budgetkit)\[(\w+)\]|--extra (\w+)|extra `(\w+)`", readme)
    assert {name for names in named for name in names if name} <= {
        *project()["optional-dependencies"]
    }
    assert {*re.findall(r"--group (\w+)", readme)} == {"dev"} <= {*pyproject()["dependency-groups"]}
    table = readme.partition("adds |\n")[2].partition("\n\n")[0].splitlines()[1:]
    assert len(table) == 5
    rows = [re.findall(r"`(\w+)`", row.split("|")[1]) for row in table]
    assert [*chain(*rows)] == [*project()["optional-dependencies"]]


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("dist-info/METADATA"))
        return message_from_bytes(archive.read(name))


def test_the_page_of_the_package_has_no_dead_link(wheel: Path) -> None:
    """No address is set in the repository, so links are their texts and pictures are left out."""
    page = metadata(wheel)
    assert page["Description-Content-Type"] == "text/markdown"
    text = page.get_payload(decode=True)
    assert isinstance(text, bytes)
    assert b"how-to pages" in text and b"](" not in text
    assert page.get_all("Project-URL") is None
    assert "Framework :: Jupyter" in page.get_all("Classifier", [])


def test_with_an_address_every_link_leads_to_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(CHECKOUT)
    page = import_module("hatch_build").page
    addresses = import_module("hatch_build").addresses
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    text = page(readme, "https://host.example/me/budgetkit", "1.2.3")
    targets = re.findall(r"(!?)\[[^\]]*\]\(([^)\s]+)\)", text)
    assert len(targets) > 8
    for mark, target in targets:
        kind = "raw" if mark else "blob"
        root = f"https://host.example/me/budgetkit/{kind}/v1.2.3/"
        assert target.startswith(root)
        assert (CHECKOUT / target.removeprefix(root)).is_file()
    urls = addresses("https://host.example/me/budgetkit", "1.2.3")
    assert urls["Changelog"] == "https://host.example/me/budgetkit/blob/v1.2.3/CHANGELOG.md"


def test_the_citation_names_this_version() -> None:
    citation = yaml.safe_load((CHECKOUT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == project()["version"]
    assert citation["license"] == project()["license"]
    assert citation["keywords"] == project()["keywords"]


def shell_lines() -> list[str]:
    """List the README's lines for the shell, without their comments."""
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```sh\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    return [line.partition("#")[0].strip() for line in block.splitlines()]


@pytest.mark.slow
def test_a_new_user_runs_every_line_of_the_readme(elsewhere: Path, tmp_path: Path) -> None:
    """The wheel is installed already, and no network is asked; a server is ended once it tells its address."""
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "Hello world"}]')
    home = {**os.environ, "HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    home.pop("PYTHONPATH", None)
    install, *commands = shell_lines()
    assert install.startswith('pip install "budgetkit[')
    assert len(commands) == 2
    for line in [*commands, "budgetkit sessions made-up-session", "budgetkit notebook"]:
        program, *arguments = line.split()
        command = [str(elsewhere.parent / program), *arguments]
        if arguments[:1] not in (["explore"], ["notebook"]):
            done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=home)
            assert done.returncode == 0 and done.stdout, done.stderr
            continue
        command.append("--no-browser")
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            cwd=tmp_path,
            env=home,
        ) as server:
            assert server.stdout is not None
            told = ""
            for row in server.stdout:
                told += row
                if "http://" in row:
                    break
            os.killpg(server.pid, signal.SIGKILL)  # JupyterLab is a child of the command
        assert "http://" in told and "Traceback" not in told, told
    written = {path.name for path in (tmp_path / "budgetkit-notebooks").glob("*.ipynb")}
    assert written == {path.name for path in (CHECKOUT / "notebooks").glob("*.ipynb")} != set()
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    where = f"{code}\nbk.DesignCard()\nprint(bk.__file__)"
    assert str(CHECKOUT) not in run(elsewhere, "-I", "-c", where, cwd=tmp_path)


def test_the_lowest_bounds_are_those_of_every_requirement() -> None:
    """What `make lowest` installs; what is pinned for the benchmarks stays out."""
    specifiers = {r.name: r.specifier for r in map(Requirement, every_requirement()) if r.specifier}
    said = run(sys.executable, "scripts/lowest_bounds.py").split()
    assert dict(line.split("==") for line in said) == {
        name: next(bound.version for bound in specifier if bound.operator == ">=")
        for name, specifier in specifiers.items()
    }
