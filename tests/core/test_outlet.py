"""One outlet for HTML and SVG: who writes markup elsewhere is found by search, and no text does anything in a page."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import budgetkit as bk
from budgetkit.budget.html import Markup, element, joined, notebook_div, xml_element
from budgetkit.lab.explorers.report import report_html
from tests.messages import user

PACKAGE = Path(bk.__file__).parent
OUTLET = PACKAGE / "budget" / "html.py"
# plotly's own marks in its texts, <b>, <br>, <extra> and coloured <span>, are no HTML of ours, nor are <|endoftext|>s
TAGS = (
    "html head meta body main style script div p h[1-6] table t[rhd] ul ol li "
    "section details summary pre button small"
)
TAGS += " svg g rect line path circle text tspan"
MARKUP = re.compile(rf"</?(?:{'|'.join(TAGS.split())})(?:[\s/>]|$)")
EVIL = '</div><script>alert(1)</script> $\\href{javascript:alert(3)}{x}$ & "quoted" \ud800 \x00'


def texts(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """List the texts of a module but for its docstrings: constants, and the parts of f-strings."""
    docstrings = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.body
        ):
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                docstrings.add(id(first.value))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
        ):
            yield node.value, node.lineno


def producers(source: str) -> list[int]:
    """List the lines on which markup is written by hand."""
    return [line for text, line in texts(ast.parse(source)) if MARKUP.search(text)]


def test_the_search_finds_who_writes_markup_by_hand() -> None:
    assert producers('x = f"<div>{name}</div>"') == [1, 1]
    assert producers('"""<div> in a docstring"""\nx = "<svg viewBox=\'0 0 1 1\'>"') == [2]
    assert producers('x = "<b>bold</b><br>" + "a < b" + "<synthetic"') == []
    assert producers('x = "<td>"') == [1]


# A template of Voilà's, Markdown's own words in files that are read, and an XML of test results.
NO_HTML = {
    *("lab/app/serving.py", "trace/containers.py"),
    *("extras/shell/checking.py", "counters/speed.py"),
}


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.relative_to(PACKAGE).as_posix()
)
def test_nobody_else_writes_markup(path: Path) -> None:
    """In 0.2.0 six modules did, and the still picture lacked what keeps MathJax out."""
    if path == OUTLET or path.relative_to(PACKAGE).as_posix() in NO_HTML:
        return
    assert producers(path.read_text(encoding="utf-8")) == [], (
        "write it with budgetkit.budget.html.element"
    )


@pytest.mark.parametrize("make", [element, xml_element])
def test_a_text_does_nothing_in_an_element(make: object) -> None:
    drawn = str(
        element("p", EVIL, title=EVIL) if make is element else xml_element("text", EVIL, id=EVIL)
    )
    assert re.findall("<[^>]*", drawn)[0].count('"') == 2
    assert drawn.count("<") == 2
    assert "$" not in drawn
    assert "\ud800" not in drawn


def test_what_was_made_here_is_put_in_as_it_is() -> None:
    assert element("p", element("b", "a"), " < b") == "<p><b>a</b> &lt; b</p>"
    assert joined(["<", Markup("<br>")]) == "&lt;<br>"


def test_the_picture_without_a_kernel_keeps_tex_out() -> None:
    """In 0.2.0 a section named $x$ was typeset in a saved notebook."""
    segments = [
        {"name": "$x$", "text": "$9$", "tokens": 9, "color": "#123456", "ink": "var(--ink)"}
    ]
    state = {
        "status": {"text": EVIL},
        "kpis": [{"label": EVIL, "value": "$1$"}],
        "source": EVIL,
        "bar": {"segments": segments},
    }
    drawn = report_html(state, EVIL)
    assert drawn.startswith('<div class="tex2jax_ignore mathjax_ignore bk-still"')
    assert "$" not in drawn
    assert "<script" not in drawn


def test_a_counted_request_keeps_tex_out() -> None:
    tool = {
        "type": "function",
        "function": {"name": "$x$", "description": EVIL.replace("\ud800", "")},
    }
    counted = bk.count_request({"model": "gpt-4o", "messages": [user("Hi")], "tools": [tool]})
    drawn = counted._repr_html_()
    assert drawn.startswith('<div class="tex2jax_ignore mathjax_ignore"')
    assert "$" not in drawn


def test_what_a_notebook_shows_is_marked() -> None:
    assert notebook_div("x") == '<div class="tex2jax_ignore mathjax_ignore">x</div>'
