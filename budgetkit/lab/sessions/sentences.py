"""Sentences on a comparison: costs, the cheapest rule, and problems."""

from __future__ import annotations

import numpy as np
import pandas as pd

from budgetkit.budget import many
from budgetkit.lab.sessions.comparing import AS_IT_WAS, RECORDED, is_ranked, ranked, replayed_cost
from budgetkit.lab.sessions.session import Session

#: How sure each number of a request is.
MARKS = (
    "Exact, from the provider: prompt, read, written, fresh, answered. Estimated, from the log: counted. "
    "Derived: unlogged and difference, with which counted sums to the prompt."
)


_UNRANKED = (
    "A replay of what was done is more than 5 % off the bill, so the rules are not ranked by cost."
)


def sentence(table: pd.DataFrame, name: str, recorded: float) -> str:
    """Describe a rule's cost for the same messages in one sentence.

    Parameters
    ----------
    table : DataFrame
        Of :func:`compare`.
    name : str
        The system.
    recorded : float
        What was billed, in US dollars.

    Returns
    -------
    str
        With the range, what left, and that it is no forecast.
    """
    row = table[table["system"] == name].iloc[0]
    if np.isnan(row["least"]):
        return f"No price is known here, so what {row['label']}'s rule would have cost is not either; give one."
    cost = _range(row["least"], row["most"])
    number = many(row["compactions"], "compaction")
    gone = many(row["used_later"], "message")
    as_it_was = f"${recorded:,.2f}"
    if is_off(table, recorded):
        replayed = replayed_cost(table)
        as_it_was = (
            f"${replayed:,.2f} as it was held, in the same replay (${recorded:,.2f} was billed)"
        )
    return (
        f"The same messages under a rule modelled on {row['label']} ({row['version']}): {cost} instead of "
        f"{as_it_was}, {number}, {gone} gone that were used later; not a forecast: the agent would have acted "
        "otherwise."
    )


def is_off(table: pd.DataFrame, recorded: float) -> bool:
    """Say whether a replay of the session as it was held comes to another sum than the bill, by more than 0.5 %.

    Parameters
    ----------
    table : DataFrame
        Of :func:`compare`.
    recorded : float
        What was billed, in US dollars.

    Returns
    -------
    bool
        Also False where nothing was replayed.
    """
    replayed = replayed_cost(table)
    return bool(recorded > 0 and abs(replayed / recorded - 1) > 0.005)


def with_held(table: pd.DataFrame) -> pd.DataFrame:
    """Add a row for the session as held, if it differs.

    That is the replay of the session, where it does not come to the bill.

    Parameters
    ----------
    table : DataFrame
        Of :func:`compare`.

    Returns
    -------
    DataFrame
        The same rows, and this one in its place by cost.
    """
    billed = table[table["system"] == RECORDED]
    if billed.empty or not is_off(table, float(billed["least"].iloc[0])):
        return table
    replayed = replayed_cost(table)
    held = billed.assign(label="as recorded, in this replay", least=replayed, most=replayed)
    billed = billed.assign(label="as recorded, as billed")
    rules = table[table["system"] != RECORDED]
    rows = pd.concat([rules, held, billed], ignore_index=True)
    return ranked(rows) if is_ranked(table) else rows


def in_short(session: Session, table: pd.DataFrame) -> list[str]:
    """Answer the three questions in a line each.

    They are the cost, the losses, and the cost of another rule.

    Parameters
    ----------
    session : Session
        A recorded session.
    table : DataFrame
        Its comparison, of :func:`budgetkit.compare`.

    Returns
    -------
    list of str
        Two or three sentences.
    """
    totals = session.totals()
    lines = []
    dear = f"{totals['read'] / max(1, totals['prompt']):.0%} of the input was read from the cache"
    kinds = session.cost_by_kind()
    if not np.isnan(totals["cost"]):
        paid = {
            "reading it": kinds["read"],
            "what was new": kinds["new"],
            "answers": kinds["answered"],
        }
        if "searches" in kinds:
            paid["web searches"] = kinds["searches"]
        dear += ": " + ", ".join(f"${cost:,.2f} for {name}" for name, cost in paid.items())
    dear = f"{dear}. {session.sentence}"
    by_cause = session.misses().groupby("cause")["missed"].sum()
    if len(by_cause) > 1:
        dear += f" Most missed tokens: {by_cause.idxmax()}."
    lines.append(f"Why so dear? {dear}")

    recorded = table[table["system"] == RECORDED].to_dict("records")
    if recorded and recorded[0]["left"]:
        row = recorded[0]
        number = "Its compaction"
        if row["compactions"] != 1:
            number = f"Its {row['compactions']:,} compactions"
        left = f"{number} took out {many(row['left'], 'message')}"
        later = f"{row['used_later']:,}" if row["used_later"] else "none"
        lines.append(f"What was lost? {left}; used later: {later}.")
    elif recorded:
        lines.append("What was lost? Nothing left the prompt.")

    acting = _acting(table).to_dict("records")
    if acting and not is_ranked(table):
        lines.append(_UNRANKED)
    elif not np.isnan(totals["cost"]) and acting:
        row = acting[0]
        cost = f"{_range(row['least'], row['most'])} under a rule modelled on {row['label']}"
        gone = many(row["used_later"], "message")
        replayed = replayed_cost(table)
        if not np.isnan(replayed):
            cost += f" (in the same replay, the session as it was held: ${replayed:,.2f})"
        lines.append(
            f"What would another rule have cost? {cost}; gone that was used later: {gone}."
        )
    return lines


def _acting(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rules that act: they write summaries, take messages out, or cut results."""
    systems = table[~table["system"].isin([AS_IT_WAS, RECORDED])]
    return systems[(systems[["compactions", "left", "capped"]] > 0).any(axis=1)]


def _range(least: float, most: float) -> str:
    cost = f"${least:,.2f}"
    if round(most, 2) > round(least, 2):
        cost += f" to ${most:,.2f}"
    return cost


def finding(table: pd.DataFrame, recorded: float) -> str:
    """Say which rule would have been the cheapest, or why nobody can.

    Parameters
    ----------
    table : DataFrame
        Of :func:`compare`.
    recorded : float
        What was billed, in US dollars; NaN where no price is known.

    Returns
    -------
    str
        One sentence.
    """
    acting = _acting(table)
    if acting.empty:
        return "None of these rules would have acted: the session stays below all their marks."
    if np.isnan(recorded):
        if acting["least"].notna().any():
            unpriced = "some of this session's requests"
        else:
            unpriced = "this session's model"
        return f"No price is known for {unpriced}, so nothing is set beside the bill; --price names another model."
    if not is_ranked(table):
        return _UNRANKED
    words = sentence(table, str(acting["system"].iloc[0]), recorded)
    replayed = replayed_cost(table)
    as_it_was = recorded if np.isnan(replayed) else replayed
    if acting["least"].iloc[0] >= as_it_was:
        return f"None of these rules would have been cheaper. {words}"
    return words


def replay_check(table: pd.DataFrame, recorded: float) -> list[str]:
    """Describe the replay's error, and the trigger of Claude Code's rule.

    Parameters
    ----------
    table : DataFrame
        Of :func:`compare`, on a recorded session.
    recorded : float
        What was billed, in US dollars; NaN where no price is known.

    Returns
    -------
    list of str
        None to three sentences.
    """
    sentences = []
    replayed = replayed_cost(table)
    if recorded > 0 and not np.isnan(replayed):
        error = round(replayed / recorded - 1, 3)
        words = f"{error:+.1%}".replace("-", "\u2212") if error else "0.0%"
        sentences.append(
            "How near is such a replay to a bill? The session as it was held comes to "
            f"${replayed:,.2f} in it, where ${recorded:,.2f} was billed: {words}."
        )
    unlogged = table.attrs.get("unlogged_summaries", 0)
    summaries = table.loc[table["summary_cost"] > 0, "summary_cost"]
    if recorded > 0 and unlogged and len(summaries):
        if unlogged == 1:
            lacking = "the call that wrote its summary"
        else:
            lacking = f"the calls that wrote {unlogged:,} summaries"
        sentences.append(
            f"The log does not hold {lacking}, so ${recorded:,.2f} lacks what that cost; the rules that write "
            f"summaries pay for theirs ({_range(summaries.min(), summaries.max())})."
        )
    trigger = table.attrs.get("own_trigger")
    if trigger is not None and "claude-code" in set(table["system"]):
        sentences.append(
            f"Claude Code's rule acts above {trigger:,} tokens, where its compactions in this session did."
        )
    return sentences


def notices(table: pd.DataFrame) -> list[str]:
    """Say which rules run into trouble of their own: a loop of compactions, a summary's call too large, a full window.

    Parameters
    ----------
    table : DataFrame
        Of :func:`compare`.

    Returns
    -------
    list of str
        One sentence a rule and trouble.
    """
    troubles = {
        "loops": "compacts again at the very next request",
        "call_overflows": "writes a summary with a call that itself exceeds the window",
        "overflows": "sends a prompt that exceeds the window",
    }
    sentences = []
    if disproved := table.attrs.get("disproved"):
        sentences.append(
            f"A recorded prompt is larger than the model's window of {disproved:,} tokens, so the rules act in an "
            "extended one; window= sets another."
        )
    for row in table[table["system"] != AS_IT_WAS].to_dict("records"):
        for column, words in troubles.items():
            number = "once" if row[column] == 1 else f"{row[column]:,} times"
            if row[column]:
                sentences.append(f"{row['label']} {words}, {number}.")
        if row["stops"]:
            sentences.append(
                f"{row['label']} would stop at request {row['stops']:,}, since it compacts again and again; what it "
                "costs after that is hypothetical."
            )
    return sentences


def turning_points(table: pd.DataFrame) -> list[str]:
    """Name each window's cheapest rule, by the price of a cached token.

    Parameters
    ----------
    table : DataFrame
        Of :func:`budgetkit.lab.sessions.turning.by_price_and_window`.

    Returns
    -------
    list of str
        One sentence a window.

    Examples
    --------
    >>> columns = ["window", "read", "system", "cheapest"]
    >>> turning_points(pd.DataFrame([(8_000, 1.0, "pi", True), (8_000, 0.1, "nothing leaves", True)], columns=columns))
    ['Window 8,000: pi costs least where a cached token costs 1 of the input price; nothing leaving at 0.1.']
    """
    sentences = []
    for window, part in table[table["cheapest"]].groupby("window"):
        names = ["nothing leaving" if name == AS_IT_WAS else str(name) for name in part["system"]]
        spans: list[tuple[str, list[str]]] = []
        for name, read in zip(names, part["read"], strict=True):
            if not spans or spans[-1][0] != name:
                spans.append((name, []))
            spans[-1][1].append(f"{read:g}")
        first, prices = spans[0]
        if len(spans) == 1:
            sentences.append(
                f"Window {window:,}: {first} costs least at every price of a cached token."
            )
            continue
        words = f"Window {window:,}: {first} costs least where a cached token costs {_span(prices)} of the input price"
        rest = "".join(f"; {name} at {_span(later)}" for name, later in spans[1:])
        sentences.append(f"{words}{rest}.")
    return sentences


def _span(prices: list[str]) -> str:
    if len(prices) == 1:
        return prices[0]
    return f"{prices[0]} to {prices[-1]}"
