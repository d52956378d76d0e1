"""Sentences about a comparison of rules or settings.

    largest error = the larger of replay_error and rule_error of the table's attrs     (shares of the bill)

Ranges are widened by this error, and no saving within this error is called certain. For a session without compactions,
the error of a rule is unknown, and the largest measured error is used.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

import budgetkit.frames as pd
from budgetkit.budget import many
from budgetkit.lab.figures.question import dollars
from budgetkit.lab.sessions.comparing import AS_IT_WAS, RECORDED, is_near, ranked
from budgetkit.lab.sessions.session import Session

#: How certain each number of a request is.
MARKS = (
    "Exact, from the provider: prompt, read, written, fresh, answered. Estimated, from the log: counted. Derived: "
    "unlogged and difference; with counted, they add up to the prompt."
)
_UNRANKED = (
    "A replay of the record is more than 5 % off the bill, so the rules are not ranked by cost."
)
#: The assumed error of a rule without a compaction to measure it, as a share of the bill: the largest in automatically
#: compacted sessions (3.5, 3.2 and 9.0 % with Claude Code, 0.1 and 8.1 % with Codex; 2026-11-27).
LARGEST_RULE_ERROR = 0.09
_NO_FORECAST = (
    "This is not a forecast: with another setting the agent would have acted differently."
)


def largest_error(attrs: Any, has_rule: bool = True) -> float:
    """Return the larger of the replay error and the rule error.

    The errors are shares of the bill. If no compaction of the session shows the rule's error, the largest error
    measured in other sessions is used, unless `has_rule` is false.
    """
    rule_error = attrs["rule_error"]
    if has_rule and np.isnan(rule_error):
        rule_error = LARGEST_RULE_ERROR
    return float(np.nanmax([0.0, abs(attrs["replay_error"]), abs(rule_error)]))


def in_short(session: Session, table: pd.DataFrame) -> list[str]:
    """Answer three questions about a session in one line each.

    The questions are about the cost, the losses, and the cost of another rule.

    Parameters
    ----------
    session : Session
        The recorded session to describe.
    table : DataFrame
        A comparison of the session with other rules, from :func:`budgetkit.compare`.

    Returns
    -------
    list of str
        The three answers, one line each.
    """
    totals = session.totals()
    dear = f"{totals['read'] / max(1, totals['prompt']):.0%} of the input was read from the cache"
    if not np.isnan(totals["cost"]):
        names = {
            "read": "cache reads",
            "new": "new input",
            "answered": "answers",
            "searches": "web searches",
        }
        paid = [f"${cost:,.2f} for {names[kind]}" for kind, cost in session.cost_by_kind().items()]
        dear += f": {', '.join(paid)}"
    dear = f"{dear}. {session.sentence}"
    if session.missing:
        dear += (
            " More may have been billed, because parts of the session could not be read or priced."
        )
    by_cause = session.misses().groupby("cause")["missed"].sum()
    if len(by_cause) > 1:
        dear += f" Main cause by tokens: {by_cause.idxmax()}."

    lost = "No messages were removed from the prompt."
    for row in table[(table["system"] == RECORDED) & (table["left"] > 0)].to_dict("records"):
        number = "Its compaction"
        if row["compactions"] != 1:
            number = f"Its {row['compactions']:,} compactions"
        later = f"{row['used_later']:,}" if row["used_later"] else "none"
        lost = f"{number} removed {many(row['left'], 'message')}; used later: {later}."
    other = finding(table)
    return [
        f"Why so expensive? {dear}",
        f"What was lost? {lost}",
        f"What would another rule have cost? {other}",
    ]


def cost_text(least: float, most: float) -> str:
    """Format a rule's cost, as a range if needed.

    Return "" if the cost is unknown. The text has only one dollar sign, because plotly reads text between two dollar
    signs as a formula.

    >>> cost_text(10.9, 12.4), cost_text(3.0, 3.0), cost_text(float("nan"), float("nan"))
    ('$10.90 to 12.40', '$3.00', '')
    """
    if np.isnan(least):
        return ""
    if dollars(least) == dollars(most):
        return dollars(least)
    return f"{dollars(least)} to {dollars(most)[1:]}"


def action_text(row: Any) -> str:
    """Describe a rule's actions in a few words.

    Return "" for a row without a rule.

    >>> action_text({"system": "pi", "compactions": 0, "left": 0, "capped": 2})
    'only cuts results'
    """
    if row["system"] in (AS_IT_WAS, RECORDED):
        return ""
    if row["compactions"]:
        return many(row["compactions"], "compaction")
    if row["left"]:
        return "clears results"
    return "only cuts results" if row["capped"] else "does not act"


def finding(table: pd.DataFrame) -> str:
    """Describe the cheapest rule and the certainty of its saving.

    If no rule can be called the cheapest, say why.

    Parameters
    ----------
    table : DataFrame
        A table from :func:`compare`.

    Returns
    -------
    str
        One to five sentences.
    """
    systems = table[~table["system"].isin([AS_IT_WAS, RECORDED])]
    # A rule acts if it writes summaries, removes messages or cuts results.
    acting = systems[(systems[["compactions", "left", "capped"]] > 0).any(axis=1)]
    if acting.empty:
        return "None of these rules would have acted: the session never reaches any of their thresholds."
    is_record = table["system"] == RECORDED
    if not is_record.any():
        is_record = table["system"] == AS_IT_WAS
    recorded = float(table.loc[is_record, "least"].item())
    if np.isnan(recorded) or acting["least"].isna().all():
        gap = table.attrs["price_gap"] or "No price is known for this conversation's model."
        return f"Some prices are missing, so nothing is compared with the bill. {gap}"
    if not is_near(table.attrs["replay_error"]):
        return _UNRANKED
    best, *others = ranked(acting).to_dict("records")
    held = table.attrs["replayed"]
    as_it_was = f"${recorded:,.2f}"
    if np.isnan(held):
        held = recorded
    elif abs(held / recorded - 1) > 0.005:
        as_it_was = f"${held:,.2f} in a replay of the record (${recorded:,.2f} was billed)"
    error = largest_error(table.attrs)
    words = (
        f"The same messages under a rule modelled on {best['label']} ({best['version']}) cost "
        f"{cost_text(best['least'], best['most'])} instead of {as_it_was}, with "
        f"{many(best['compactions'], 'compaction')} and {many(best['used_later'], 'message')} removed and used later. "
        "This is not a forecast: the agent would have acted differently."
    )
    highest = best["most"] * (1 + error)
    ties = [row["label"] for row in others if row["least"] * (1 - error) <= highest]
    if ties:
        words += f" Within the error, {names_with_and(ties)} may cost as little."
    if best["least"] * (1 - error) >= held:
        return f"None of these rules would have been cheaper. {words}"
    if highest >= held:
        return f"No saving is certain, because such a replay is off by up to {error:.1%}. {words}"
    return words


def replay_check(table: pd.DataFrame) -> list[str]:
    """Describe the replay's errors, and the trigger of Claude Code's rule.

    Parameters
    ----------
    table : DataFrame
        A table from :func:`compare`.

    Returns
    -------
    list of str
        At most three sentences.
    """
    sentences = []
    attrs = table.attrs
    if not np.isnan(attrs["replay_error"]):
        recorded = table.loc[table["system"] == RECORDED, "least"].item()
        error = round(attrs["replay_error"], 3)
        words = f"{error:+.1%}".replace("-", "\u2212") if error else "0.0%"
        sentences.append(
            "How close is such a replay to the bill? Replayed as recorded, the session costs "
            f"${attrs['replayed']:,.2f}; ${recorded:,.2f} was billed: {words}."
        )
        summaries = table.loc[table["summary_cost"] > 0, "summary_cost"]
        if attrs["unlogged_summaries"] and len(summaries):
            lacking = "the call that wrote its summary"
            if attrs["unlogged_summaries"] > 1:
                lacking = f"the calls that wrote {attrs['unlogged_summaries']:,} summaries"
            sentences.append(
                f"The log does not contain {lacking}, so ${recorded:,.2f} excludes that cost; rules that write "
                f"summaries include it ({cost_text(summaries.min(), summaries.max())})."
            )
    if not np.isnan(attrs["rule_error"]):
        sentences.append(
            f"Claude Code's rule acts above {attrs['own_trigger']:,} tokens, where its compactions in this session "
            f"did, and comes within {abs(attrs['rule_error']):.1%} of the bill."
        )
    return sentences


def notices(table: pd.DataFrame) -> list[str]:
    """Describe the rules that fail by looping or overflowing the window.

    Prompts that exceed the window without pruning are reported, too.

    Parameters
    ----------
    table : DataFrame
        A table from :func:`compare`.

    Returns
    -------
    list of str
        One sentence per rule and problem, after a note if the model's window had to be extended.
    """
    troubles = {
        "loops": "compacts again at the very next request",
        "call_overflows": "writes a summary with a call that itself exceeds the window",
        "overflows": "sends a prompt that exceeds the window",
    }
    sentences = []
    if disproved := table.attrs.get("disproved"):
        sentences.append(
            f"A recorded prompt is larger than the model's window of {disproved:,} tokens, so an extended window is "
            "assumed; window= sets another."
        )
    for row in table.to_dict("records"):
        if row["system"] == AS_IT_WAS:
            if row["overflows"]:
                sentences.append(
                    f"Without pruning, {many(row['overflows'], 'prompt')} would exceed the window."
                )
            continue
        for column, words in troubles.items():
            number = "once" if row[column] == 1 else f"{row[column]:,} times"
            if row[column]:
                sentences.append(f"{row['label']} {words}, {number}.")
        if row["stops"]:
            sentences.append(
                f"{row['label']} would stop at request {row['stops']:,}, because it compacts repeatedly; its "
                "cost after that is hypothetical."
            )
    return sentences


def turning_points(table: pd.DataFrame) -> list[str]:
    """Describe the cheapest rules for each window and cached-token price.

    Parameters
    ----------
    table : DataFrame
        A table from :func:`budgetkit.lab.sessions.comparing.by_price_and_window`.

    Returns
    -------
    list of str
        One sentence per window.

    Examples
    --------
    >>> columns = ["window", "read", "system", "cheapest"]
    >>> turning_points(pd.DataFrame([(8_000, 1.0, "pi", True), (8_000, 0.1, "no pruning", True)], columns=columns))
    ['Window 8,000: pi costs least where a cached token costs 1 times the input price; keeping everything at 0.1.']
    """
    sentences = []
    for window, part in table[table["cheapest"]].groupby("window"):
        spans = []
        for name, rows in groupby(part[["system", "read"]].values.tolist(), itemgetter(0)):
            reads = [f"{read:g}" for _, read in rows]
            name = "keeping everything" if name == AS_IT_WAS else name
            spans.append((name, " to ".join(dict.fromkeys([reads[0], reads[-1]]))))
        (first, prices), *later = spans
        words = f"Window {window:,}: {first} costs least"
        if not later:
            sentences.append(f"{words} at every price of a cached token.")
            continue
        rest = "".join(f"; {name} at {span}" for name, span in later)
        sentences.append(
            f"{words} where a cached token costs {prices} times the input price{rest}."
        )
    return sentences


def sentences_of(table: pd.DataFrame) -> list[str]:
    """Describe the costs of a setting's values, and how certain they are.

    Parameters
    ----------
    table : DataFrame
        A table from :func:`what_if`.

    Returns
    -------
    list of str
        Two to eight sentences.

    Examples
    --------
    >>> import budgetkit as bk
    >>> table = bk.what_if(bk.Session(bk.load_trace("made-up-session")), threshold=[100_000, 150_000])
    >>> sentences_of(table)[-1]
    'This is not a forecast: with another setting the agent would have acted differently.'
    """
    attrs: Any = table.attrs
    rows: Any = table.iloc[1:].to_dict("records")
    for row in rows:
        row["name"] = value_text(row["value"])
        row["middle"] = (row["least"] + row["most"]) / 2
    if table["least"].iloc[1:].isna().all():
        unknown = "No price is known for this session, so its settings cannot be compared by cost."
        return [unknown, _NO_FORECAST]
    sessions = "the session comes within {:.1%} of its bill"
    if "sessions" in attrs:
        sessions = "each session comes within {:.1%} of its bill"
    error = f"Replayed as recorded, {sessions.format(abs(attrs['replay_error']))}"
    if not np.isnan(attrs["rule_error"]):
        error += f"; compacted by the same rule where its program did, within {abs(attrs['rule_error']):.1%}"
    if not attrs["is_ranked"]:
        return [
            f"{error}. That is more than 5 % off, so no value is called the cheapest.",
            _NO_FORECAST,
        ]
    if np.isnan(attrs["rule_error"]) and table.at[0, "setting"] in ("threshold", "keep"):
        error += ". No automatic compaction shows the rule's error, so 9 % is assumed, the largest measured"

    limits = []
    if too_large := names_with_and([row["name"] for row in rows if row["overflows"]]):
        limits.append(f"At {too_large}, prompts exceed the window.")
    if stops := names_with_and([row["name"] for row in rows if row["stops"]]):
        limits.append(f"At {stops}, the program would stop, because it compacts repeatedly.")
    usable = [row for row in rows if not row["overflows"] and not row["stops"]]
    flat = [row for row in usable if row["flat"]] or usable
    if not flat:
        return ["None of these values can be used.", *limits, f"{error}.", _NO_FORECAST]
    cheapest = min(row["middle"] for row in flat)
    names = [row["name"] for row in flat]
    if len(rows) == 1:
        sentences = [f"{names[0]} would have cost ${cheapest:,.2f}."]
    elif len(names) == len(rows):
        sentences = ["All these values cost the same within the error."]
    elif len(names) > 1:
        sentences = [f"{names_with_and(names)} cost the same within the error."]
    else:
        sentences = [f"{names[0]} costs least of the usable values: ${cheapest:,.2f}."]
    dearest = max(rows, key=lambda row: row["middle"])
    if dearest not in flat:
        words = f"{dearest['name']} would have cost ${dearest['middle']:,.2f}"
        if dearest["middle"] > 1.05 * cheapest:
            words += f", {dearest['middle'] / cheapest:.1f} times as much"
        sentences.append(f"{words}.")

    # Of values that cost the same, choose the one that loses least.
    chosen = min(flat, key=lambda row: row["used_later"])
    few, *_, most = sorted([chosen, *rows], key=lambda row: row["used_later"])
    ends = [
        f"{row['name']} drops {row['used_later']:,}"
        for row in (few, most)
        if row["used_later"] != chosen["used_later"]
    ]
    if ends:
        lost = many(chosen["used_later"], "message")
        sentences.append(
            f"Choose {chosen['name']}, which drops {lost} used later; {names_with_and(ends)}."
        )
    sentences += limits
    held_on = f" with {attrs['model']}" if attrs.get("model") else ""
    recorded = f"As recorded{held_on}, it cost ${attrs['billed']:,.2f}"
    if attrs["billed"] < min(row["low"] for row in rows):
        sentences.append(f"{recorded}, less than with any of these values.")
    elif attrs.get("saved_low", 1.0) <= 0:
        sentences.append(f"{recorded}.")  # the result on the newer sessions follows
    elif chosen["high"] < attrs["billed"]:
        saved = (f"{1 - chosen[end] / attrs['billed']:.0%}" for end in ("high", "low"))
        sentences.append(
            f"{recorded}; {chosen['name']} would have saved {' to '.join(dict.fromkeys(saved))}."
        )
    else:
        sentences.append(f"{recorded}, which lies within the error: no saving is certain.")
    if "sessions" in attrs:
        sentences.append(_trial_sentence(attrs))
    if number := attrs["missing"]:
        sentences.append(
            f"Parts of {many(number, 'session')} could not be read or priced, so these costs may be too low."
        )
    return [*sentences, f"{error}.", _NO_FORECAST]


def _trial_sentence(attrs: Any) -> str:
    """Describe the result of the chosen value on the newer sessions."""
    saved, *ends = (
        f"{attrs[name]:.1%}".replace("-", "\u2212") for name in ("saved", "saved_low", "saved_high")
    )
    would = f"it would have saved {saved} of the bill"
    if attrs["saved_high"] < 0:
        would = f"it would have cost {saved[1:]} more"
        ends = [end[1:] for end in reversed(ends)]
    words = (
        f"{attrs['sessions']:,} sessions are used; left out, without a known price or with a replay more than 5 % off: "
        f"{attrs['left_out']:,}. {value_text(attrs['chosen'])} cost least on the older "
        f"{attrs['sessions'] - attrs['tried_on']:,} sessions; on the newer {attrs['tried_on']:,}, {would} "
        f"(95 % interval: {ends[0]} to {ends[1]})"
    )
    if attrs["saved_low"] <= 0 <= attrs["saved_high"]:
        words += ": no saving is certain"
    return f"{words}."


def value_text(value: Any) -> str:
    """Format the value of a setting.

    >>> value_text(100_000), value_text("1h")
    ('100,000', '1h')
    """
    return f"{value:,}" if isinstance(value, int) else str(value)


def names_with_and(names: list[str]) -> str:
    """Join names with commas and "and"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
