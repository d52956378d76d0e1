"""check(): checks of prompts, tools and conversations against a budget.

The check fails if a section exceeds its cap, a request and its answer exceed the window, a floor is not kept, too many
conversations are cut, the model has ended, something cannot be counted, or tokens are estimated without a reserve for
the error.
Images of unknown size are counted at their largest, and must fit. Each failure comes with the plan and a fix.
Misspelled, unknown or missing input, or input of a wrong type, is an error, so that a mistake never passes.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import regex

from budgetkit.budget import Budget, brief, check_tokens, many, one_line, unknown_section
from budgetkit.budget.amounts import MOST_TOKENS
from budgetkit.budget.errors import out_of_range, wrong_kind, wrong_type
from budgetkit.budget.quoting import nearest_name
from budgetkit.counters import (
    Count,
    FunctionCounter,
    basis_for,
    basis_of,
    estimated_by,
    nearer_sentence,
)
from budgetkit.extras.shell.inputs import check_tools, tools_in
from budgetkit.extras.shell.terminal import read_text
from budgetkit.inputs.budgets import (
    AnyBudget,
    AnyCounter,
    AnyModel,
    filled_in,
    read_budget,
    setup_of,
)
from budgetkit.lab.replay.cost import prices
from budgetkit.lab.replay.prompt_cache import CACHES, provider_rules
from budgetkit.lab.replay.replaying import replay
from budgetkit.message import misspelt_keys
from budgetkit.models import Model, resolve
from budgetkit.models import today as this_day
from budgetkit.plan import Plan, allocate
from budgetkit.plan.advice import ADD_BUFFER, Finding, findings, has_buffer
from budgetkit.plan.batch import Columns, RequestBatch
from budgetkit.plan.plan import free_tokens
from budgetkit.pruning import Policy, policy_of
from budgetkit.requests import DEFAULT_FRAMING, read_tools
from budgetkit.requests.billing.charges import count_charges, originals_of
from budgetkit.requests.billing.images import at_largest
from budgetkit.requests.billing.request_count import uncounted_parts
from budgetkit.requests.reading.formats import format_names, format_table
from budgetkit.requests.reading.forms import ROWS, form_of
from budgetkit.requests.reading.parts import objects_in
from budgetkit.requests.reading.request import ProviderRequest, provider_request, request_shape
from budgetkit.requests.reading.tools import FURTHER_PAGES, tool_name
from budgetkit.trace import DEFAULT_ROLES, Trace
from budgetkit.trace.loading import UnreadableFileError

# A visible character: not ignorable, no control, no blank (Braille and music have one each).
_VISIBLE = regex.compile(r"[^\p{DI}\p{C}\p{Z}\s\u2800\U0001D159]")
#: A single word that looks like a path, with a folder or a suffix; "/no_think" is a command.
_PATH = re.compile(
    r"(?!/[\w@+-]*\Z)(?:[A-Za-z]:)?[~\w.@+-]*(?:[/\\][\w.@+-]*)+|[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,7}"
)
#: Keys outside the messages that may contain a part of the prompt, which is not read there.
_PROMPTS = ("system", "system_prompt", "instructions", "developer", "preamble", "tools")
#: Keys of other requests' messages, and of an SDK's call, which are not read next to messages.
_ELSEWHERE = {"input", "contents", "promptVariables", "extra_body"}
#: Fields of a message that is a piece of a provider's record.
_OF_PIECES = {"tool_calls", "tool_call_id", "reasoning_content"}


@dataclass(frozen=True)
class Failure:
    """A reason why a check failed.

    Parameters
    ----------
    code : str
        Kind of failure: "cap", "overrun", "floor", "cut", "estimate" or "retired".
    where : str
        Location of the failure: the prompts, or a conversation and its turn.
    sentence : str
        The problem, with its numbers.
    mend : str
        The fix.
    section : str
        The affected section, or "" if the failure does not concern a single section.
    plan : str
        The plan of the worst request, with its warnings.
    """

    code: str
    where: str
    sentence: str
    mend: str = ""
    section: str = ""
    plan: str = ""

    @property
    def detail(self) -> str:
        """The plan and the suggested fix."""
        return "\n".join(filter(None, [self.plan, self.mend]))

    def __str__(self) -> str:
        return f"{self.code}: {self.where}: {self.sentence}\n{self.detail}".rstrip("\n")


@dataclass(frozen=True)
class CheckResult:
    """The result of a check.

    Parameters
    ----------
    failures : tuple of Failure
        The reasons why the check failed, or an empty tuple if it passed.
    findings : tuple of Finding
        Problems with the budget itself.
    sections : mapping
        Maximum demand of each section, in tokens.
    conversations, cut, failing : int
        Number of conversations checked, of those that are cut, and of those that exceed a limit.
    strict : bool
        If true, findings fail the check as well.
    """

    failures: tuple[Failure, ...]
    findings: tuple[Finding, ...]
    sections: Mapping[str, int]
    conversations: int = 0
    cut: int = 0
    strict: bool = False
    failing: int = 0

    @property
    def passed(self) -> bool:
        """True if the check passed."""
        return not self._reasons

    @property
    def headline(self) -> str:
        """The result in one sentence, with the reasons for a failure.

        Examples
        --------
        >>> CheckResult((), (), {}, conversations=2, cut=1).headline
        'The check passed; 1 of 2 conversations loses something.'
        """
        parts = ["The check passed"]
        if not self.passed:
            codes = dict.fromkeys(reason.code for reason in self._reasons)
            parts = [f"The check failed: {', '.join(codes)}"]
        if self.failing:
            parts.append(f"a limit is exceeded in {_share_of(self.failing, self.conversations)}")
        if self.cut or (self.conversations and not self.failing):
            parts.append(self.losing)
        return "; ".join(parts) + "."

    @property
    def losing(self) -> str:
        """The number of conversations that are cut, as a phrase."""
        verb = "loses" if 1 in (self.cut, self.conversations) else "lose"
        return f"{_share_of(self.cut, self.conversations)} {verb} something"

    @property
    def _reasons(self) -> tuple[Failure | Finding, ...]:
        return (*self.failures, *(self.findings if self.strict else ()))

    @property
    def explanations(self) -> list[str]:
        """Each failure with its plan and its fix, without repeated plans."""
        first = {failure.plan: failure for failure in reversed(self.failures)}
        return [
            str(failure if failure is first[failure.plan] else replace(failure, plan=""))
            for failure in self.failures
        ]

    def __str__(self) -> str:
        reasons = [*self.explanations, *(map(str, self.findings) if self.strict else ())]
        return "\n\n".join(reasons) or "nothing outgrows the budget"


def _share_of(number: int, conversations: int) -> str:
    return f"{number:,} of {many(conversations, 'conversation')}"


def check(
    budget: AnyBudget,
    *,
    prompts: Mapping[str, str | Path] | None = None,
    tools: Any = None,
    traces: Iterable[Trace] | None = None,
    counter: AnyCounter | None = None,
    model: AnyModel | None = None,
    window: int | None = None,
    policy: Policy | str | None = None,
    most_cut: float | None = None,
    floor: int | None = None,
    thinking: int = 0,
    today: date | None = None,
    strict: bool = False,
) -> CheckResult:
    """Check prompts, tools and conversations against a budget.

    Parameters
    ----------
    budget : Budget, str, Path or callable
        The budget to check against: a budget, the Path of its file, a preset, or a preset's name.
    prompts : mapping of str to str or Path
        Sections whose text is the same in every request, with this text or the Path of its file. The text replaces the
        section's text in conversations. A str is never opened as a file, and a str that looks like a path is rejected.
    tools : list of mapping, or the answer of an MCP server
        Tool schemas of every request, in any format (:mod:`budgetkit.requests.reading.tools`); they replace the tools
        of a conversation.
    traces : iterable of Trace
        Recorded conversations.
    counter : str, Model or callable, optional
        Function that counts the tokens in a text; default: the counter of the model, or o200k_base. With an estimate
        (`basis_of`), a budget without a buffer fails the check.
    model : str or Model, optional
        The model that answers; it determines the window of a preset, the counter and some findings. An unknown model is
        rejected unless a window is given.
    window : int, optional
        Context window, in tokens, in place of the window of the budget or the model.
    policy, thinking
        The pruning policy, and the maximum number of tokens for thinking. Some findings depend on them; see
        `budgetkit.plan.advice.Case`.
    today : date, optional
        Date on which the model is used. By default, the current date decides whether the model has ended, and the age
        of the model's facts is not checked.
    most_cut : float, optional
        Maximum share of conversations that may be cut; default: not checked.
    floor : int, optional
        Minimum number of tokens that must be left for the budget's remainder; default: the floor in the budget.
    strict : bool, default False
        If true, findings fail the check as well.

    Returns
    -------
    CheckResult
        The failures, the findings, and the demand of each section.

    Raises
    ------
    LookupError
        If a section of a prompt or conversation is not in the budget, or is probably misspelled.
    ValueError
        If there is nothing to check, `most_cut` is not a share or is given without conversations, `floor` is given for
        a budget without a remainder, or a prompt is empty or looks like a path.
    TypeError
        If an argument has the wrong type.

    Examples
    --------
    >>> from budgetkit import Allocation
    >>> result = check(Budget(100, (), [Allocation("system", 5)]), prompts={"system": "Be brief. Be kind. Be right."})
    >>> print(result.failures[0].sentence)
    system asks for 13 tokens, 8 above its cap (5)
    """
    is_share = isinstance(most_cut, int | float) and not isinstance(most_cut, bool)
    if most_cut is not None and not (is_share and 0 <= most_cut <= 1):
        raise ValueError(out_of_range("most_cut", most_cut, "a share from 0 to 1, such as 0.1"))
    if not isinstance(today, date | None):
        raise TypeError(wrong_type("today", today, "a date, such as date(2026, 1, 31)"))
    floor = None if floor is None else check_tokens("floor", floor)
    thinking = check_tokens("thinking", thinking)
    if all(given is None for given in (prompts, tools, traces, model)) and not strict:
        raise ValueError(
            "Nothing to check. Pass conversations, prompts, tools or a model, or use strict=True (--strict in the "
            "shell) to check the budget alone."
        )

    # The budget, the counter and the tools, converted from any supported form.
    texts = {} if prompts is None else _texts(prompts)
    budget = read_budget(budget)
    model, counter, policy = filled_in(budget, model, counter, policy)
    if model is not None:
        model = resolve(model, window, must_know=True)
    setup = setup_of(budget, counter, None, model, window)
    budget, count, framing = setup.budget, setup.counter, setup.framing
    # A conversation uses its own model.
    own_framing = None if model is None else framing
    policy = None if policy is None else policy_of(policy)
    if tools is not None:
        tools = tools_in(tools)
    toolset = read_tools(tools)
    tools = toolset.listed
    lines = replace(budget, deficit="signed")
    # If the pool took undeclared sections, a misspelled section would be added and the intended section would stay
    # empty.
    if unknown := [section for section in texts if section not in lines.sections]:
        raise unknown_section(unknown, lines.sections)

    # The prompts and tools alone.
    messages = [{"role": "system", "content": text} for text in texts.values()]
    prompt_sizes = dict(zip(texts, framing.messages(messages, count), strict=True))
    section = (lines.roles or DEFAULT_ROLES).get("tools", "tools")
    schemas = framing.schemas(tools, count, messages[:1]) if tools else 0
    prompt_demand = {**prompt_sizes}
    if tools:
        prompt_demand[section] = prompt_demand.get(section, 0) + schemas
    demands = [pd.DataFrame([prompt_demand])] if prompt_demand else []
    floors = dict(lines.floors)
    if floor is not None:
        if lines.remainder is None:
            raise ValueError("This budget has no remainder. Leave the floor out.")
        floors[lines.remainder] = floor
    failures: list[Failure] = []
    for sizes in demands:
        failures += Requests(lines, "prompts and tools", sizes).failures(floors, {*prompt_demand})
    fixed_sections = {a.section for a in lines.allocations if a.required}
    if tools:
        fixed_sections.add(section)
    fixed_sections -= {*prompt_sizes, *(failure.section for failure in failures)}

    # The conversations, each with its own demand and all of its uncounted parts.
    models = [model]
    cut = list[bool]()
    conversations_failing = 0
    dropped_messages = [0]
    request = ProviderRequest("chat", tools=toolset.functions, uncounted=toolset.uncounted)
    uncounted = uncounted_parts(request, None, model, lambda: framing.charges(request))
    for trace in () if traces is None else traces:
        if not isinstance(trace, Trace):
            raise TypeError(wrong_kind("conversation", trace, "a Trace from budgetkit.load_traces"))
        if tools:
            trace = replace(trace, tools=tools)
        _check_messages(trace)
        own = trace.framing_of(count, own_framing)
        own_request = _recorded_request(trace)
        models.append(resolve(trace.model) if model is None and trace.model else model)
        # Without a model, nobody knows which thinking the provider drops.
        rules = None if own is DEFAULT_FRAMING else own.rules
        # It is recorded in one format, and counted in OpenAI's chat format.
        for shape in dict.fromkeys((own_request.shape, "chat")):
            request = replace(own_request, shape=shape)
            uncounted += uncounted_parts(request, rules, models[-1], partial(own.charges, request))
        where = one_line(trace.id)
        sized_messages = tuple(at_largest(m, rules.model if rules else "") for m in trace.messages)
        has_unsized = sized_messages != trace.messages
        if has_unsized:
            trace = replace(trace, messages=sized_messages)
            where += ", with images of unknown size at their largest"
        tally = trace.tally(count, lines.roles or DEFAULT_ROLES, own_framing)
        demand = trace.demand(count, lines.roles or None, own_framing)
        # The given prompts replace those of the conversation.
        for name, tokens in prompt_sizes.items():
            of_tools = [item.tokens for item in tally.schemas if item.section == name]
            demand[name] = tokens + sum(of_tools)
        if own_request.schema:
            own_request = replace(own_request, messages=trace.messages[:1], model=trace.model or "")
            charges = own.charges(own_request)
            schema = [charge for charge in charges if charge.kind == "answer schema"]
            demand[section] = demand.get(section, 0) + sum(count_charges(schema, count))
        demands.append(demand := _known_sections(lines, demand))
        answer = _longest_answer(trace.fields) if lines.kind == "shared" else 0
        requests = Requests(lines, where, demand, answer)
        own_failures = list(requests.failures(floors, fixed_sections))
        failures += own_failures
        conversations_failing += bool(own_failures)
        cut.append(any(column["cut"].any() for column in requests.columns.values()))
        if has_unsized and cut[-1]:
            uncounted.append("image of unknown size")
        if policy is not None:
            pruned = replay(
                trace, replace(lines, undeclared="pool"), policy, counter=count, framing=own_framing
            ).kept
            dropped_messages += [*pruned.dropped_messages, 0]
    if traces is not None and not cut:
        raise ValueError("No conversations. Pass at least one, or leave traces out.")

    # The failures of all requests together, then the findings.
    largest = pd.concat(demands).max() if demands else pd.Series(dtype=int)
    if most_cut is not None:
        if not cut:
            raise ValueError("most_cut needs conversations. Pass traces, or leave most_cut out.")
        if sum(cut) > most_cut * len(cut):
            problem = f"{sum(cut):,} of {len(cut):,} cut, above the limit of {most_cut:.0%}"
            mend = "- Raise a cap or the window, or allow a larger share."
            failures.append(Failure("cut", "conversations", problem, mend))
    if model is not None and model.ends and model.ends <= (today or this_day()).isoformat():
        problem = f"{one_line(model.name)} was retired on {model.ends}"
        mend = "- Check with a model that is still available."
        failures.append(Failure("retired", "model", problem, mend))
    estimates = _estimated(lines, count, models, [*dict.fromkeys(uncounted)]) if demands else []
    failures += estimates
    # The prompt size above which the price rises; the price list comes with the extra lab.
    price_step = 0
    with suppress(ImportError):
        price = None if model is None else prices(model, today).input
        if price is not None and price.tiers:
            price_step = price.tiers[0][0]
    find = partial(
        findings,
        budget,
        model=model,
        policy=policy,
        thinking=thinking,
        estimated_by="" if model is None else estimated_by(count, model),
        today=today,
        # A cache depends on the length of a request, which a prompt alone does not determine.
        cache_minimum=CACHES[provider_rules(model)].minimum if cut and model is not None else 0,
        price_step=price_step,
    )
    notices = list(find(lost=dropped_messages, tools=schemas))
    for demand in demands:  # a code is reported for one demand only
        codes = {finding.code for finding in notices}
        notices += [finding for finding in find(demand=demand) if finding.code not in codes]
    if estimates:  # this failure replaces the finding with the same message
        notices = [finding for finding in notices if finding.code != "stand-in-without-buffer"]
    return CheckResult(
        failures=tuple(failures),
        findings=tuple(notices),
        sections={str(name): int(most) for name, most in largest.items()},
        conversations=len(cut),
        cut=sum(cut),
        strict=strict,
        failing=conversations_failing,
    )


#: A context manager that treats a broken file in a folder as an error.
refusing_unreadable_files = partial(
    warnings.catch_warnings, action="error", category=UnreadableFileError
)


def _texts(prompts: Any) -> dict[str, str]:
    """Return the texts of the prompts, reading those given as a Path."""
    if not isinstance(prompts, Mapping):
        raise TypeError(wrong_kind("prompts", prompts, "a mapping from section to text"))
    if not prompts:
        raise ValueError("No prompts. Pass at least one, or leave prompts out.")
    texts = {}
    for section, prompt in prompts.items():
        where = f"prompt of section {brief(section)}"
        if not isinstance(prompt, str | Path):
            raise TypeError(wrong_kind(where, prompt, "a string or a Path"))
        text = read_text(str(prompt)) if isinstance(prompt, Path) else prompt
        if not _VISIBLE.search(text):
            raise ValueError(f"Empty {where}. Pass its text, or leave it out.")
        if text is prompt and _PATH.fullmatch(text.strip()):
            raise ValueError(
                f"The {where} looks like a path: {brief(text)}. Pass pathlib.Path({brief(text)}) to read the file."
            )
        texts[section] = text
    return texts


def _check_messages(trace: Trace) -> None:
    """Reject a conversation with invalid keys, so that no content goes uncounted."""
    for key, value in trace.fields.items():
        if value and (key in _ELSEWHERE or nearest_name(str(key), _PROMPTS)):
            raise ValueError(
                f"Unknown key {brief(key)} next to the messages of {one_line(trace.id)}. Write 'system' or 'tools', or "
                "leave it out."
            )
    check_tools(trace.tools)
    # Ollama's field "format" does not name a known format.
    is_chat = str(trace.fields.get("format")) in ("None", trace.format)
    for place, message in enumerate(trace.messages, start=1):
        problems = [*misspelt_keys(message.raw)]
        if message.is_empty and "content" not in message.raw and is_chat:
            problems = [("No 'content'", "Add it")]
        for problem, advice in problems:
            raise ValueError(
                f"{problem} in message {place} of {one_line(trace.id)}. {advice}, or leave it out."
            )


def _longest_answer(fields: Mapping[str, Any]) -> int:
    """Return the tokens of the longest answer that a request asks for, or 0."""
    marks = format_table("marks")
    settings = objects_in([fields, *map(fields.get, marks["settings"])])
    sizes = (part.get(name) for part in settings for name in marks["longest_answer"])
    return min(MOST_TOKENS, max([0, *(size for size in sizes if isinstance(size, int))]))


def _recorded_request(trace: Trace) -> ProviderRequest:
    """Read a conversation as the request that was recorded.

    Fields of a file or of its messages that do not belong to a request, such as a title, are not listed as uncounted.
    """
    format = str(trace.fields.get("format"))
    if format not in format_names():  # Ollama's field "format" does not name one
        format = "openai-chat"
    records = [
        record
        for message in trace.messages
        # Other messages are pieces of a record that another message has.
        if "native" in message.raw or format == "openai-chat" or _OF_PIECES.isdisjoint(message.raw)
        for record in originals_of(message)
    ]
    shape = (
        next((form for form, row in ROWS.items() if row == format), None)
        or next(filter(None, map(form_of, records)), None)
        or request_shape({**trace.fields, "messages": []})
        or "chat"
    )
    body = {**trace.fields, "tools": trace.tools, "toolConfig": trace.tools}
    request = provider_request(body, shape, trace.messages, records)
    kinds_of_file = ["field "]
    if format not in format_table("marks")["requests"]:
        kinds_of_file += ["message field ", "part field ", "item "]
    names = [name for name in request.uncounted if not name.startswith(tuple(kinds_of_file))]
    functions = read_tools(trace.tools).functions
    names += [f"tool {tool_name(tool)}" for tool in request.tools if tool not in functions]
    if any(map(trace.fields.get, FURTHER_PAGES)):
        names.append("further pages of messages")
    return replace(request, tools=functions, uncounted=tuple(names))


def _estimated(
    budget: Budget, count: Count, models: Iterable[Model | None], uncounted: Sequence[str]
) -> list[Failure]:
    """Return a failure for uncounted content or an estimate without a buffer."""
    if uncounted:
        problem = f"{', '.join(map(one_line, uncounted))} cannot be counted"
        return [Failure("estimate", "count", problem, "- Correct it, or leave it out.")]
    if has_buffer(budget):
        return []
    for model in models:
        basis = basis_of(count) if model is None else basis_for(count, model)
        if basis == "estimate":
            name = one_line(getattr(count, "name", "") or FunctionCounter(count).name)
            of_model = "" if model is None or model.name in name else f" of {one_line(model.name)}"
            problem = f"{name} estimates the tokens{of_model}, and no reserve covers its error"
            exactly = "or count exactly; if your own function does, set its attribute exact to True"
            mend = f"- {ADD_BUFFER[0].upper()}{ADD_BUFFER[1:]}, {exactly}."
            if model is not None and not model.is_known:
                problem = f"Unknown model {brief(model.name)}: {problem}"
                mend += "\n- Or choose a listed model (-m in the shell, model= in Python)."
            nearer = nearer_sentence(count)
            return [Failure("estimate", "count", problem, f"{mend}\n{nearer}" if nearer else mend)]
    return []


def _known_sections(budget: Budget, demand: pd.DataFrame) -> pd.DataFrame:
    """Return the demand without empty unknown sections.

    An unknown section whose name is similar to a section of the budget is rejected.
    """
    used = [name for name in demand if name in budget.sections or demand[name].any()]
    unknown = [str(name) for name in used if name not in budget.sections]
    if misspelt := [name for name in unknown if nearest_name(name, budget.sections)]:
        raise unknown_section(misspelt, budget.sections)
    return demand.loc[:, used]


@dataclass(frozen=True)
class Requests:
    """The demand of one or more requests, one per row.

    All of these requests ask for the same longest answer, in tokens.
    """

    budget: Budget
    where: str
    demand: pd.DataFrame
    answer: int = 0

    @cached_property
    def columns(self) -> Columns:
        """The demand, limit, grant and cut of each request, by section."""
        return RequestBatch(self.demand).columns(self.budget)

    def failures(self, floors: Mapping[str, int], fixed: set[str]) -> Iterator[Failure]:
        """Yield one failure for each exceeded limit, with its worst request."""
        budget = self.budget
        for section, column in self.columns.items():
            cap = budget.caps.get(section)
            over = column["demand"] - (column["limit"] if cap is None else cap)
            worst = int(over.argmax())
            if section in fixed and over[worst] > 0:
                limit = f"the tokens left for it ({column['limit'][worst]:,})"
                if cap is not None:
                    limit = f"its cap ({cap:,})"
                demand = f"{one_line(section)} asks for {column['demand'][worst]:,} tokens"
                problem = f"{demand}, {over[worst]:,} above {limit}"
                yield self._failure("cap", problem, worst, section)
        # The free tokens of each request beside the reserves, then beside its answer; negative if it does not fit.
        sent = sum(column["granted"] for column in self.columns.values())
        answer = f"its answer ({self.answer:,} tokens, as the file asks)"
        mend = "- Ask for a shorter answer in the file, or reserve as many tokens for it."
        for subject, tokens, mends in (
            ("a request exceeds", free_tokens(budget, self.columns), ()),
            (f"a request and {answer} exceed", budget.window - self.answer - sent, (mend,)),
        ):
            free = np.atleast_1d(tokens)
            worst = int(free.argmin())
            if free[worst] < 0:
                over_by = f"by {-free[worst]:,} tokens"
                problem = f"{subject} the window ({budget.window:,}) {over_by}"
                yield self._failure("overrun", problem, worst, "", *mends)
                break
        for section, floor in floors.items():
            limits = self.columns[section]["limit"]
            worst = int(limits.argmin())
            if limits[worst] < floor:
                left = f"{one_line(section)} has {max(0, limits[worst]):,} tokens left"
                mend = f"- Raise its cap to {floor:,}."
                if (budget.caps[section] or floor) >= floor:
                    mend = "- Lower a reserve, or shorten the sections before it."
                yield self._failure(
                    "floor", f"{left}, below its floor ({floor:,})", worst, section, mend
                )

    def _failure(self, code: str, problem: str, row: int, section: str = "", *more: str) -> Failure:
        demand = self.demand
        plan = allocate(self.budget, {str(name): int(demand[name].iloc[row]) for name in demand})
        turn = f", turn {demand.index[row]}" if demand.index.name == "turn" else ""
        mends = [f"- {mend.sentence}" for mend in plan.why(section).mends] if section else []
        return Failure(
            code=code,
            where=self.where + turn,
            sentence=problem,
            mend="\n".join([*mends, *more]),
            section=section,
            plan=plan_text(plan),
        )


def plan_text(plan: Plan) -> str:
    """Write a plan as text, with its warnings."""
    rows = [
        f"  {one_line(g.section)}: {g.granted:,} of {g.demand:,}, limit {g.limit:,}"
        for g in plan.grants
    ]
    heading = f"Plan of {plan.budget.window:,} tokens, {plan.free:,} free:"
    return "\n".join([heading, *rows, *plan.warnings])
