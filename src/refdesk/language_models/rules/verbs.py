"""English verbs: the base of a past or progressive form, and which words an order can begin with."""

from __future__ import annotations

import regex

_IRREGULAR_FORMS = """
    begun/begin began/begin bent/bend bled/bleed bought/buy bound/bind broken/break broke/break brought/bring
    built/build came/come caught/catch chosen/choose chose/choose cut/cut dealt/deal did/do died/die done/do
    drawn/draw drew/draw driven/drive drove/drive dug/dig dying/die eaten/eat fallen/fall fed/feed felt/feel
    fought/fight flown/fly forgotten/forget found/find froze/freeze frozen/freeze gave/give given/give gone/go got/get
    gotten/get grown/grow heard/hear held/hold hid/hide hidden/hide hit/hit hung/hang kept/keep knew/know known/know
    laid/lay led/lead left/leave lent/lend let/let lied/lie lost/lose lying/lie made/make meant/mean met/meet
    overridden/override overwritten/overwrite owed/owe owing/owe paid/pay proven/prove put/put quit/quit ran/run
    read/read rebuilt/rebuild redone/redo resent/resend reset/reset rewritten/rewrite run/run said/say saw/see
    seen/see sent/send set/set shaken/shake shook/shake shown/show shut/shut sold/sell sought/seek spent/spend
    split/split spoken/speak spoke/speak spread/spread spun/spin stolen/steal stood/stand struck/strike stuck/stick
    swept/sweep swung/swing taken/take taught/teach thought/think threw/throw thrown/throw tied/tie told/tell
    took/take tying/tie understood/understand undone/undo untied/untie untying/untie went/go woken/wake
    withdrawn/withdraw withdrew/withdraw withheld/withhold won/win wound/wind written/write wrote/write
"""
IRREGULAR = {form: base for pair in _IRREGULAR_FORMS.split() for form, _, base in [pair.partition("/")]}
"""Form → base, for the forms that no rule makes."""

_BASES_IN_EED = regex.compile(r"(?:n|bl|f|sp|s|w|br|h|exc|proc|succ)eed")
_DOUBLED = regex.compile(r"([bdgkmnprtvz])\1$")
_DOUBLE_BASES = regex.compile(r"(?:^|re-?)(?:add|err|ebb|butt|purr|buzz)$|(?:fuzz|fizz)$")
_DOUBLED_L = regex.compile(
    r"(?:canc|trav|mod|lab|lev|chann|tunn|marv|couns|exc|prop|comp|exp|reb|fu|imp)ell$"
    r"|(?:contr|patr)oll$|(?:sign|tot|di|ped|equ|riv|initi)all$|(?:fulf|dist|inst)ill$"
)
_K_AFTER_C = regex.compile(r"(?:mim|pan|traff|picn|frol)ick$")
_SILENT_E = regex.compile(
    r"""(?:
      (?<!syn)c | [vu] | (?<!z)z | (?<!canva|focu|viru|bia|alia|s)s | (?:^p|^w|^t|^h|unt)ast
    | (?<!n)g | (?:ch|r|^m)ang | [lv]eng | (?:pl|o|xp|^l)ung | (?:^s|cr|^h)ing
    | (?<![lrwaeiouy])l | (?:sc|exh|inh|wh|imp)al | (?<![ao])(?:^f|ref|prof|comp|sm|conc|wh|^p|^t|ex)il
    | (?:cons|caj|cond|par)ol | (?:ed|r|ps)ul | yl
    | (?<![aeo]|form|comb|ch)at | creat | [mns]eat | (?:[dl]el?|mpl|epl|obsol|comp|cr)et
    | (?:inv|un|exc|rec|inc|wr|ign|exped|^k|^c)it | (?:qu|prom|den|dev|dem|rem|^v|up|down|out|(?:^|foot)n)(?:v)?ot
    | (?<!o|inp|deb)ut | (?:^|re)rout
    | (?<![aeo])id | (?<![eo])ad | (?:c|pl|r)od | (?<![ao])ud | (?:c|mp|ers)ed|supersed
    | (?<![eo]|sug|coll|st)ar | (?:^|re)star | (?<!a|ven)ir | (?:^st|rest|gn|pl|sc|ad|^b|^p)or | (?<!o|murm|sulf)ur
    | (?:adh|nterf|sev|coh|^rev)er
    | (?<![eo])ak | ik | (?<!o)ok | uk
    | (?<![eo]|gr|c)am | (?:fr|^c)am | sch?em | (?:^t|pr|ch|^m|sl|[ea]t|dt)im | (?:c|^h|chr)om | (?:s|f|xh|l)um | ym
    | (?:nter|con|contra)ven | (?:f|b|rm|xam|mag|l|^m|^d|sh|rant|mach|cc|derm|^wh)in
    | (?:tp|ph|cond|cl|^z|dr|at|^t|^h)on | (?:^t|pr|^d)un
    | (?<![eo])ap | (?:w|p|gr|str|sn)ip | (?:^c|sc|^h|sl|^r|gr|^el)op | yp | ^dup | ib | (?:pr|gl)ob | [tc]ub
    | (?:breath|bath|cloth|sooth|loath|writh) | (?:^c|^|tooth|head)ach
    )$""",
    regex.VERBOSE,
)
"""Ends of stems before -ed and -ing that lack the e of their base, such as "clos" and "configur"."""


def restore(stem: str) -> str:
    """Return a verb from its stem before -ed or -ing: a silent e is put back, a doubled consonant made single."""
    if _DOUBLED_L.search(stem) or _K_AFTER_C.search(stem):
        return stem[:-1]
    if _DOUBLED.search(stem):
        return stem if _DOUBLE_BASES.search(stem) else stem[:-1]
    return f"{stem}e" if _SILENT_E.search(stem) else stem


def is_past(word: str) -> bool:
    """Return whether a word can be a past participle."""
    return word in IRREGULAR or (word.endswith("ed") and _BASES_IN_EED.fullmatch(word) is None)


def get_base(form: str) -> str:
    """Return the base of an English past or progressive form, "refund" for "refunded"; other words stay as they are."""
    word = form.casefold()
    if word in IRREGULAR:
        return IRREGULAR[word]
    if word.endswith("ied"):
        return f"{word[:-3]}y"
    if word.endswith("eed"):
        return word[:-1] if is_past(word) else word
    for ending in ("ed", "ing"):
        if word.endswith(ending) and regex.search(r"[aeiouy]", stem := word.removesuffix(ending)):
            return stem if stem.endswith("ee") else restore(stem)
    return word


_COMMON_VERBS = """
    accept access activate add adjust align apply approve arrange ask assign attach authorize back block blow book
    boot bring browse build bypass calibrate call cancel change charge check choose clean clear click close collect
    compare complete compress configure confirm connect contact convert copy correct create cut deactivate decline
    decrease delete deny deselect detach dial disable disconnect dismiss double-click downgrade download drag drain
    drive drop edit eject email empty enable enter erase exit expand export extend fill find fix flip flush fold
    follow force format forward give go grant hide hold ignore import increase insert inspect install invite join keep
    launch leave let lift limit link load lock log look loosen lower make map mark measure merge migrate monitor move
    mute navigate note notify open order pair paste pause pick ping place plug point postpone power press print
    proceed provide pull purge push put raise reach read reboot recalibrate recharge reconnect record recreate
    redirect reduce refer refill refresh refund register reinstall reject release reload remove rename renew repair
    repeat replace reply report request reschedule reseat reset resize restart restore resubmit resume retry return
    review revoke right-click rinse roll rotate run save scan schedule screw scroll search seat select send set shake
    share ship show shut sign skip slide sort split start stop store submit subscribe suspend swap swipe switch sync
    synchronize take tap test tick tighten toggle transfer trim try turn type unblock uncheck undo uninstall unlink
    unlock unmute unpair unplug unscrew unsubscribe untick update upgrade upload use validate verify visit wait walk
    wash wipe withdraw write zip
"""
COMMON = frozenset(_COMMON_VERBS.split())
"""Base forms of verbs that agents and customers of a service desk use."""

_NO_VERBS = """
    i you he she it we they this that these those there here who what which when where why how whether if unless until
    while once since because although though as before after during for from with without within at by in into on onto
    off of over under up down out to through about above below between against behind beside besides near per via and
    or but nor so yet then than not no yes only just even also both either neither all half such quite rather many any
    some each every most more less much few several same maybe perhaps please sorry is are was were am be been being
    has have had do does did will would shall should can could may might must ought let's lets like unlike despite
    except apart instead regarding concerning across along around inside outside plus minus toward towards another
    always never often sometimes still again ever soon too very well first last next now today tomorrow yesterday
    tonight thanks hello hope guess glad good great nice fine sure monday tuesday wednesday thursday friday saturday
    sunday everything something nothing anything everyone someone nobody done
"""
_NOT_VERBS = frozenset(_NO_VERBS.split())
_FIRST = regex.compile(r"^(?P<verb>\p{L}[\p{L}-]*)\b\ *(?P<rest>.*)$", regex.DOTALL)
_OBJECT = regex.compile(
    r"(?:the|your|an?|this|that|these|those|both|all|any|every|each|it|them|my|our)\b", regex.IGNORECASE
)
_FINITE = regex.compile(
    r"\b(?:is|are|was|were|has|have|had|will|would|can|cannot|could|may|might|should|must|does|did)\b", regex.IGNORECASE
)
_CLAUSE_ENDS = regex.compile(
    r"[,;.:]|\b(?:when|if|until|unless|that|which|where|what|while|after|before|because|so|whether|how|once)\b",
    regex.IGNORECASE,
)


def can_begin_order(said: str) -> bool:
    """Return whether the first word of a sentence can be a verb in its base form."""
    match = _FIRST.match(said)
    if match is None or said.rstrip().endswith("?") or _OBJECT.match(said):
        return False
    verb = match["verb"].casefold()
    inflected = (is_past(verb) and IRREGULAR.get(verb) != verb) or regex.search(r"(?:ly|ing|[^su]s)$", verb)
    return verb in COMMON or (verb not in _NOT_VERBS and not inflected)


def begins_order(said: str) -> bool:
    """Return whether a sentence begins like an imperative: with a known verb, or with another and its object."""
    match = _FIRST.match(said)
    if match is None or not can_begin_order(said):
        return False
    is_known, has_object = match["verb"].casefold() in COMMON, _OBJECT.match(match["rest"]) is not None
    is_statement = _FINITE.search(_CLAUSE_ENDS.split(match["rest"])[0]) is not None
    return has_object if is_known and is_statement else is_known or (has_object and not is_statement)
