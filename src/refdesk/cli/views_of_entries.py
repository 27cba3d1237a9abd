"""Renders knowledge entries and import and export reports for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from refdesk.toolsets.knowledge.transfer.reports import ImportReport

MOST_SHOWN = 20
"""Most problems of an import that are shown; `--json` has more of them."""


def tell_stored(answer: Mapping[str, Any]) -> str:
    """Return where a stored entry is now, and how it is found."""
    if answer["replayed"]:
        return f"Stored before, by the same token: {answer['id']}."
    told = f"Stored: {answer['id']}. Keyword search finds it now, semantic search once it is embedded."
    if "duplicateOf" in answer:
        same = answer["duplicateOf"]
        told += f"\nThe entry {same} says the same; refdesk knowledge withdraw takes back one of them."
    return told


def tell_restored(answer: Mapping[str, Any]) -> str:
    """Return which entry holds now, and what was withdrawn in its favour."""
    if answer["headId"] != answer["id"]:
        return f"{answer['id']} is {answer['state']}; what holds now is {answer['headId']}."
    edit = answer.get("withdrawnEdit")
    return f"{answer['id']} holds again." + (
        f" The edit, {edit}, is withdrawn; refdesk knowledge restore {edit} brings it back." if edit else ""
    )


def render_list(answer: Mapping[str, Any]) -> str:
    """Return a page of entries for a person to read: one line each, then which part of the whole it is."""
    lines = [
        f"{entry['id']}  {entry['createdAt'][:10]}  {entry['author']}: {entry['title']}" for entry in answer["entries"]
    ]
    for unknown in answer.get("unknownTags", []):
        near = " or ".join(unknown["didYouMean"])
        lines.append(f"No entry has the tag {unknown['tag']}." + (f" Try {near}." if near else ""))
    first, last = answer["offset"] + 1, answer["offset"] + len(answer["entries"])
    lines.append(
        f"{first} to {last} of {answer['total']}" if answer["entries"] else tell_none("entries", answer["total"])
    )
    lines += tell_more(answer)
    return "\n".join(printable(line) for line in lines)


def tell_more(answer: Mapping[str, Any]) -> list[str]:
    """Return how to go on behind a page of a list; no line on the last one."""
    cursor = answer.get("nextCursor", answer.get("next_cursor"))
    return [f"There are more: --cursor {cursor}"] if cursor else []


def tell_none(things: str, total: int) -> str:
    """Return what to say on an empty page, given how many things there are in all."""
    return f"No further {things}: there are {total} in all." if total else f"No {things}."


def count(shown: int, total: int, thing: str) -> str:
    """Return how many of the things in all are shown."""
    if not total:
        return f"No {thing}s."
    return f"{shown} of {total} {thing}s" if total != 1 else f"1 {thing}"


def render_tags(answer: Mapping[str, Any]) -> str:
    """Return tags for a person to read, with how many entries carry each."""
    lines = [f"{each['entries']:>7}  {each['tag']}" for each in answer["tags"]]
    return "\n".join([*lines, count(len(lines), answer["total"], "tag")])


def render_authors(answer: Mapping[str, Any]) -> str:
    """Return agents for a person to read, with how many entries of each hold now."""
    lines = [f"{each['entries']:>7}  {each['author']}" for each in answer["authors"]]
    return printable("\n".join([*lines, count(len(lines), answer["total"], "agent")]))


def render_entry(entry: Mapping[str, Any]) -> str:
    """Return an entry for a person to read."""
    chain = [f"  {_mark(member, entry)} {member['id']}  {member['title']}" for member in entry["chain"]]
    lines = [entry["title"], "", *_facts(entry), "", entry["body"]]
    lines += ["", "What superseded what, oldest first:", *chain] if len(chain) > 1 else []
    return printable("\n".join(lines))


def tell_imported(report: ImportReport) -> str:
    """Return what an import did or would do: counts first, then what was rejected and why."""
    counts = [
        ("added", report.added),
        ("there already", report.unchanged),
        ("links added", report.links_added),
        ("in conflict with what is stored, which stays", report.conflicts),
        ("invalid", report.invalid),
        ("over the quota", report.over_quota),
        ("parts and files left out", report.left_out),
    ]
    lead = "Nothing was changed; this is what an import would do:" if report.dry_run else "Imported:"
    rows = [f"{count:>8}  {words}" for words, count in counts if count or words == "added"]
    total = report.conflicts + report.invalid + report.over_quota + report.left_out
    shown = [problem.line for problem in report.problems[:MOST_SHOWN]]
    more = [f"  and {total - len(shown)} more; --json lists them"] if total > len(shown) else []
    return "\n".join([lead, *rows, *shown, *more])


def printable(text: str) -> str:
    """Return text without terminal control characters; line breaks stay."""
    return "".join(character if character.isprintable() or character == "\n" else " " for character in text)


def _facts(entry: Mapping[str, Any]) -> Iterator[str]:
    yield f"id          {entry['id']}"
    yield f"author      {entry['author']}, {entry['createdAt'][:10]}, {entry['confidence']} % sure"
    if entry["tags"]:
        yield f"tags        {', '.join(entry['tags'])}"
    if "expiresAt" in entry:
        yield f"{'expired' if entry['isExpired'] else 'expires':<12}{entry['expiresAt']}"
    if entry["headId"] != entry["id"]:
        yield f"superseded  what holds now is {entry['headId']}"
    for task in entry["taskRefs"]:
        yield f"task        {task['taskId']} ({task['kind']})"
    for link in entry["links"]:
        if link["kind"] != "supersedes" and link["toolset"] != "task":
            arrow = "to" if link["direction"] == "out" else "from"
            yield f"link        {link['kind']} {arrow} {link['toolset']}/{link['id']}"
    yield f"embedding   {entry['embeddingStatus']}"


def _mark(member: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    return ">" if member["id"] == entry["id"] else " "
