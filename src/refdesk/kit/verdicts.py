"""What customers say about whether something helped."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, TypeAlias

import regex

from refdesk.kit import phrases, sentences

Verdict: TypeAlias = Literal["worked", "failed", ""]

_DID_NOT_HELP = regex.compile(
    r"""(?:^|\b(?:it|that|this|they|which|but|still)\b[^.!?]{0,16}?)
        \b(?:did|does|do|has|have|had|is|was)(?:n['’]?t|\ not)\ (?:really\ |quite\ |even\ |actually\ )?
        (?:help|work|fix|solv|resolv|chang|improv|do\ (?:it|anything|the\ trick)|make\ (?:a|any)\ difference)\p{Ll}*
        (?!\ for\ (?:me|us)\b)
    | ^(?:it(?:['’]s|\ is|\ does)?\ |that\ )?still\b
        (?!.{0,30}\b(?:work|fine|good|great|thank|wait|need|want|have\ (?:a|one)))
    | ^(?:no\ (?:luck|change|difference|effect)|same\ (?:error|problem|issue|result|thing)
        |nothing\ (?:changed|happens|happened))
    | \b(?:don['’]?t|do\ not)\ think\ (?:it|that|this)\ (?:help|work|fix|did)\p{Ll}*
    | \b(?:still\ the\ same|no\ (?:luck|effect)\ (?:so\ far|either|there)|made\ no\ difference|to\ no\ avail)\b""",
    regex.IGNORECASE | regex.VERBOSE,
)
_FAILED = regex.compile(
    r"\b(?:still\ (?:does|is|do|are|can)(?:n'?t|\ not)|(?:doesn'?t|does\ not|didn'?t|did\ not)"
    r"\ (?:work|help)(?!\ for\ (?:me|us)\b)"
    r"|useless|waste\ of\ time"
    r"|not\ (?:resolved|helpful|solved|fixed|working)|terrible\ service|never\ mind,?\ (?:i'?ll|this))\b",
    regex.IGNORECASE | regex.VERBOSE,
)
_WORKED = regex.compile(
    r"\b(?:it|that|this)(?:'s|\ is|\ has|\ did)?\ (?:now\ )?(?:works?|worked|working|fixed|solved|resolved)\b(?!\s*\?)"
    r"|\bproblem\ (?:is\ )?solved\b|(?<!\bnot\ |n['’]t\ )\b(?:works|working|fine|sorted|fixed|solved"
    r"|all\ good)\ (?:now|again)\b"
    r"|(?<!\bnot\ |n['’]t\ |\bnever\ )\b(?:fixed|solved|resolved|cured)\ (?:it|this|the\ (?:problem"
    r"|issue))\b(?!.{0,20}\?)"
    r"|(?<!\bnot\ |n['’]t\ )\bd(?:id|oes)\ the\ trick\b|\b(?:it|everything|that)(?:['’]s|\ is)\ (?:all\ )?(?:fine"
    r"|ok|okay|good|back)\ now\b"
    r"|^(?:solved|fixed|resolved|works)\b(?!\s*\?)",
    regex.IGNORECASE | regex.VERBOSE,
)

_CLAUSES = regex.compile(
    r"[,;，；、]\s*|\s+(?:but|and|aber|und|mais|et|pero|ma|mas|maar|ale)\s+|けど、?|ですが、?|但是?|不过"
)


@lru_cache(sentences.MAX_REMEMBERED)
def judge_answer(text: str) -> Verdict:
    """Return what an answer to an advice says of the advice; a sentence about something else says nothing."""
    return _judge(text, (_DID_NOT_HELP,), ("FAILED",))


@lru_cache(sentences.MAX_REMEMBERED)
def judge_end(text: str) -> Verdict:
    """Return what a customer's last words say of how it went."""
    return _judge(text, (_DID_NOT_HELP, _FAILED), ("FAILED", "UNSOLVED"))


def _judge(text: str, failures: tuple[regex.Pattern[str], ...], kinds: tuple[phrases.Kind, ...]) -> Verdict:
    """Return the last verdict of a text: what did not help at first may have been mended since."""
    for sentence in reversed(sentences.split_all(text)):
        for clause in reversed(_CLAUSES.split(sentence)):
            said = (clause, sentences.drop_greeting(clause))
            if any(failure.search(each) for failure in failures for each in said):
                return "failed"
            if any(_WORKED.search(each) for each in said):
                return "worked"
            if not sentences.asks(clause) and (found := _judge_foreign(clause, kinds)):
                return found
    return ""


def _judge_foreign(clause: str, kinds: tuple[phrases.Kind, ...]) -> Verdict:
    """Return what a clause in another language than English says; a negation makes the opposite of what worked."""
    if phrases.has("GONE", clause):
        return "worked"
    if any(phrases.has(kind, clause) for kind in kinds):
        return "failed"
    return "worked" if phrases.has("WORKED", clause) and not phrases.has("NEGATION", clause) else ""
