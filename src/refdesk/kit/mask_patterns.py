"""Patterns of personal data in further countries, services and languages; their group `value` is masked.

Each pattern is linear in the length of the text: every repetition in it is bounded.
"""

from __future__ import annotations

import regex

CARD, EMAIL, PHONE = "[card number]", "[e-mail]", "[phone number]"
SOCIAL_SECURITY, ACCOUNT, SECRET = "[social security number]", "[account number]", "[secret]"
ORDER, ADDRESS, BIRTH, NETWORK, KEY = "[order number]", "[address]", "[date of birth]", "[IP address]", "[API key]"

PASSWORD_NAMES = (
    r"(?:password|passphrase|passcode|passwort|kennwort|contraseña|mot\ de\ passe|wachtwoord|hasło|senha|lösenord"
    r"|passord|adgangskode|heslo|salasana|şifre|parola|пароль|pwd|pw|パスワード|暗証番号|密码|비밀번호)"
)
LINK = (
    r"(?:\s{0,2}(?:is|was|are|will\ be|should\ be|to|=|:|：|は|が|是|ist|lautet|war|es|est|era|è|é|to|это|\#)\s{0,2}"
    r"(?:now\s|set\ to\s|still\s|just\s|simply\s)?['\"“#(]{0,2})"
)
_SAID_BEFORE = r"(?:\ (?:that\ )?(?:they|you|he|she|we|i)\ \p{Ll}{2,12}(?:\ \p{Ll}{1,8}){0,2})?"

_NO_PASSWORD_WORDS = """
    incorrect wrong required expired case not too it the a an my your that this correct invalid reset no only also still
    again right fine good bad empty blank missing optional mandatory secret secure safe strong weak long short old new
    same different unknown known lost gone there here set sent shown saved stored encrypted hashed hidden needed changed
    sorry slow broken down blocked disabled greyed accepted rejected refused
    locked about asked printed visible different enough ok okay correctly protected default
    something nothing anything what being in on at to be and or so very always never longer
    falsch richtig korrekt ungültig abgelaufen erforderlich zu nicht leer sicher unsicher incorrecto incorrecta correcta
    inválida caducada obligatoria obligatorio necesaria expiré expirée obligatoire requis requise faux erroné sbagliata
    errata scaduta obbligatoria verkeerd onjuist verlopen verplicht fout błędne nieprawidłowe incorreta expirada
"""
NO_PASSWORD = frozenset(_NO_PASSWORD_WORDS.split())
"""Words that may follow "the password is" in a sentence about passwords, and are not a password."""

PLAIN_PASSWORD = regex.compile(
    rf"""(?<!\w)(?P<name>{PASSWORD_NAMES}{_SAID_BEFORE}|(?:user\ ?name|login|user\ id))
      (?P<between>{LINK}|(?<!login),\s(?=\p{{L}}{{4,40}},))(?P<value>\p{{L}}{{4,40}})
      (?=["'”’)]?(?:[.,;!?\n]|\s?$|\s(?:yesterday|today|now|and|but|for|これ)\b|\sです))""",
    regex.VERBOSE | regex.IGNORECASE,
)
"""A password that consists of letters only: a word after which no sentence continues."""

_ID_NAMES = r"""(?:national\ insurance(?:\ number)?|ni\ number|nhs\ number|medicare(?:\ number)?|aadhaar
    |steuer-?\ ?(?:id|nummer)|personalausweis|nie|dni|nif|cpf|cnpj|pesel|codice\ fiscale|bsn|bsb
    |kontonummer|kundennummer|konto|cuenta|kundennr\.?|vertragsnummer|klantnummer
    |(?:numéro\ de|n°)\ (?:compte|client)
    |número\ de\ (?:cuenta|cliente)
    |numero\ (?:cliente|conto)
    |driving\ licen[cs]e|imei|serial\ (?:number|no\.?)|seriennummer|a/c|acct
    |my\ ref(?:erence)?)"""
_ORDER_NAMES = r"""(?:(?:bestellung|commande|pedido|ordine|encomenda|zamówienie|beställning)
      (?:\ (?:n°|nr\.?|no\.?|num\.?))?
    |bestellnummer|auftragsnummer|rechnungsnummer|sendungsnummer|ordernummer|numéro\ de\ (?:commande
    |facture|suivi)|número\ de\ (?:pedido|factura|seguimiento)|numero\ (?:ordine|d'ordine)|numer\ zamówienia|注文番号
    |订单号)"""
_AFTER = r"(?:\s{0,2}(?:is|ist|lautet|est|es|è|é|:|：|=|は|是|\#)?\s{0,2}\#?)"
_CODED = r"(?P<value>(?=[\w/.-]{0,12}\d)\w[\w/.-]{3,30}\w(?:\ \d{2,8}){0,4})"
_BIRTH_NAMES = r"""(?:geburtsdatum|geboren(?:\ am|\ op)?|née?\ le|date\ de\ naissance|nacid[oa]\ el
    |fecha\ de\ nacimiento|nat[oa]\ il|data\ di\ nascita|data\ de\ nascimento|urodzon[ya]|生年月日)"""
_SECRET_NAMES = r"""(?:(?:client[_ ])?secret(?=\s?[:=])|client[_ ]secret
    |(?:aws_)?secret[_ ](?:access[_ ])?key|access[_ ]key|api[_ -]?key|auth[_ ]token
    |access[_ ]token|licen[cs]e\ key|product\ key|activation\ key|private\ key(?:-{5})?)"""
_CODE_NAMES = r"""(?:(?:verification|confirmation|security|access|login|sms|one-?\ ?time|auth(?:entication)?|2fa)\ code
    |bestätigungscode|sicherheitscode|sms-code|tan|code\ de\ (?:vérification|sécurité|confirmation)
    |código\ de\ (?:verificación|seguridad)|codice\ di\ (?:verifica|sicurezza)|verificatiecode|kod\ weryfikacyjny
    |code\ pin|pin-?code|验证码|確認コード|otp|cvv|cvc|pin|code(?=[^\n\d]{0,40}(?:[A-Z]-)?\d{3}[ -]?\d))"""
_NO_CODE = "".join(
    rf"(?<!{kind}\ )"
    for kind in ("error", "status", "promo", "discount", "country", "area", "zip", "source", "exit", "post", "dress")
)
_DIGITS = r"(?P<value>(?:[A-Z]-)?\d{3}[ -]?\d{3}|\d{3,8})(?![\w.]\d|\w)"
_DOT = r"(?:\ (?:dot|punkt|punto)\ |\ ?[\[(]dot[\])]\ ?)"
_LONG_CODE = r"(?P<value>\d{2,3}(?:[ -]\d{2,3}){1,2}|\d{5,8})(?![\w.]\d|\w)"
_CARDS = r"(?:card|visa|mastercard|master\ card|amex|american\ express|maestro|girocard|karte|carte|tarjeta|carta)"
_OWNERS = r"(?:account|acct|a/c|iban|number|phone|mobile|konto|compte|cuenta)"
_LAST_FOUR = (
    r"(?:(?:number\ )?(?:that\ )?(?:ending|ends|endet|endend|terminant|finissant|que\ termina)(?:\ (?:in|with|on|mit"
    r"|auf|par|en))?|(?:the\ )?last\ (?:four|4)(?:\ digits)?(?:\ (?:are|is)|:)?|(?<=\w)\s?[*x•.]{2,12})\s{0,2}"
)
_CITY = r"\p{Lu}[\p{L}’'-]{1,25}"
_PART = r"(?:\p{Lu}[\p{L}’'.-]{1,24}|ul\.|de|la|del|du|des|der|den|van|von)"


_STRONG = r"(?P<value>(?=[^\s\[\]]{0,40}[\d!@\#$%^&*])[^\s\[\]“”\"',;()]{5,60}(?<![.?!]))"


def _make(pattern: str, flags: int = regex.IGNORECASE) -> regex.Pattern[str]:
    return regex.compile(pattern, regex.VERBOSE | flags)


BEFORE: tuple[tuple[regex.Pattern[str], str], ...] = (
    (_make(rf"(?<!\w){_SECRET_NAMES}(?:\s?[:=]\s?|\s(?:is\s)?)"
           r"(?P<value>(?=\S{0,80}\d)[^\s\"'\[\]]{12,400}\w)"), KEY),
    (_make(r"(?<![\w-])(?P<value>github_pat_\w{20,120})(?!\w)", 0), KEY),
    (_make(r"(?<!\w)(?P<value>[A-Z0-9]{5}(?:-[A-Z0-9]{5}){3,5})(?![\w-])", 0), KEY),
    (_make(r"(?<=://)(?P<value>[^\s:/@\[\]]{1,60}:[^\s:/@\[\]]{1,60})(?=@)"), SECRET),
    (_make(r"(?<!\w)passphrase(?:\s?[:=]\s?|\s(?:is|was):?\s)(?P<value>\p{L}{2,15}(?:\ \p{L}{2,15}){2,7})"
           r"(?=[.,;!?\n]|\s?$)"), SECRET),
    (_make(rf"(?<!\w)(?:{PASSWORD_NAMES}|pass(?=\s?[:=])|(?:wi-?fi|network)\ key)(?:{LINK}|\s|,\s)"
           rf"{_STRONG}"), SECRET),
    (_make(rf"(?<!\w){PASSWORD_NAMES}\b[^\n.!?\d\[]{{0,40}}?\s(?:is|was|to|ist|est|es|è|é)\s{_STRONG}"), SECRET),
    (_make(r"(?<!\w)(?-i:[A-Z][A-Z_]{0,30}_)?(?:TOKEN|KEY|SECRET|PASSWORD|PASSWD|PWD)\s?=\s?"
           r"(?P<value>[^\s\"'\[\]]{6,400})"), SECRET),
    (_make(rf"(?<!\w)answer(?:\ to\ (?:my|the|her|his)(?:\ \p{{Ll}}{{2,12}}){{1,3}})?{LINK}(?P<value>(?-i:\p{{Lu}})"
           r"[\p{L}’'-]{1,30})(?=[.,;!?\n]|\s?$)"), SECRET),
    (_make(rf"(?<![\w.])(?P<value>[\w-]{{1,30}}(?:{_DOT}[\w-]{{1,30}}){{0,3}}\ at\ [\w-]{{1,30}}"
           rf"(?:{_DOT}[\w-]{{2,20}}){{1,3}})(?!\w)"), EMAIL),
    (_make(rf"(?<![\w.])(?P<value>[\w.-]{{1,40}}\ ?[\[(]at[\])]\ ?[\w-]{{1,30}}"
           rf"(?:(?:{_DOT}|\.)[\w-]{{2,20}}){{1,3}})(?!\w)"), EMAIL),
    (_make(rf"(?<!\w){_BIRTH_NAMES}\s?[:：]?\s?(?P<value>\d{{1,4}}[/.年-]\s?\d{{1,2}}[/.月-]\s?\d{{1,4}}日?"
           r"|\d{1,2}\.?\ (?:de\ |di\ )?\p{L}{3,10}\.?\ (?:de\ |del\ )?\d{4})"), BIRTH),
    (_make(rf"(?<!\w){_CARDS}\b[^\n\d\[]{{0,20}}?{_LAST_FOUR}(?P<value>\d{{4}})(?!\d)"), CARD),
    (_make(r"\blast\ (?:four|4)\ (?:digits|numbers)(?:\ (?:are|is)|:)?\ (?P<value>\d{4})(?!\d)"), ACCOUNT),
    (_make(rf"(?<!\w){_OWNERS}\b[^\n\d\[]{{0,20}}?{_LAST_FOUR}(?P<value>\d{{3,4}})(?!\d)"), ACCOUNT),
    (_make(rf"(?<![\p{{L}}\d])(?P<value>(?:{_PART}\ ){{0,4}}(?:{_PART})\ \d{{1,4}}\ ?[a-zA-Z]?,\ (?:[A-Z]{{1,2}}-)?"
           rf"(?:\d{{4,5}}|\d{{2}}-\d{{3}})(?:\ [A-Z]{{2}})?\ {_CITY})", 0), ADDRESS),
    (_make(rf"(?<!\w)(?P<value>(?:rua|av\.|avenida|calle|c/|viale|via|piazza|plaza|praça|rue|ul\.|ulica|aleja|corso)\ "
           rf"(?:{_PART}\ ){{0,3}}(?-i:{_PART}),?\ \d{{1,5}}(?:,\ (?-i:{_CITY}(?:\ {_CITY})?))?)(?![\w-])"), ADDRESS),
    (_make(r"(?<!\w)(?:plz|postleitzahl|code\ postal|código\ postal|zip|postcode)(?:\ is|\ ist|:)?\ (?P<value>\d{4,5})"
           r"(?!\w)"), ADDRESS),
)  # fmt: skip
"""What is masked before anything else, in this order, each with its placeholder."""

AFTER: tuple[tuple[regex.Pattern[str], str], ...] = (
    (_make(rf"(?<!\w){_NO_CODE}{_CODE_NAMES}\b[^\n.!?\d\[\]]{{0,30}}?"
           rf"(?:\b(?:is|was|ist|lautet|est|es|è|said)|:|：|=|は|是)\s{{0,2}}{_DIGITS}"), SECRET),
    (_make(r"(?<!\w)code\ (?P<value>\d{3}[ -]\d{3})(?![\w.]\d|\w)"), SECRET),
    (_make(rf"(?<!\w)(?:pin|pin-?code|otp|tan|cvv|cvc)\ {_DIGITS}"), SECRET),
    (_make(rf"\b(?:sms|text\ message)\ (?:said|says|was|with|reads?)\ {_LONG_CODE}"), SECRET),
    (_make(rf"\b(?:typed?|enter(?:ed)?|got|received|used?)\ (?:the\ code\ )?{_LONG_CODE}"
           r"(?=[^\n.!?]{0,40}\b(?:code|otp|sms|passcode|pin)\b)"), SECRET),
    (_make(rf"\b(?:received|got|enter(?:ed)?|typed?|use)\ {_DIGITS}(?=\ (?:as|to\ (?:sign|log)|by\ (?:sms|text)"
           r"|from\ the\ (?:sms|text|app))\b)"), SECRET),
    (_make(rf"(?<!\w){_ID_NAMES}{_AFTER}{_CODED}"), ACCOUNT),
    (_make(rf"(?<!\w){_ORDER_NAMES}{_AFTER}{_CODED}"), ORDER),
    (_make(rf"(?<!\w)(?i:pnr|record\ locator|(?:booking|reservation)(?:\ (?:reference|code|number))?"
           rf"|confirmation\ (?:number|code))"
           rf"{_AFTER}(?P<value>(?=[A-Z\d]{{0,7}}\d)[A-Z\d]{{5,8}}|(?-i:[A-Z]{{6}}))(?!\w)", 0), ORDER),
    (_make(r"(?<!\w)(?P<value>1Z[0-9A-Z]{16})(?!\w)", 0), ORDER),
    (_make(r"""(?<![\w.-])(?P<value>[A-Z]{2}\ ?\d{2}\ ?\d{2}\ ?\d{2}\ ?[A-D] | \d{3}\.\d{3}\.\d{3}-\d{2}
           | [XYZ]-?\d{7}-?[A-Z] | \d{8}-?[A-Z] | [A-Z9]{5}\d{6}[A-Z9]{2}\d[A-Z]{2}
           | [1-9][A-Z][A-Z0-9]\d-[A-Z][A-Z0-9]\d-[A-Z]{2}\d{2})(?![\w-])""", 0), ACCOUNT),
    (_make(r"(?<!\w)(?:twitter|instagram|telegram|tiktok|skype|discord|mastodon)(?!\w)"
           r"(?:\ (?:handle|name|id|account))?"
           rf"{_AFTER}(?P<value>(?=[\w.:@\#-]{{0,40}}[\d_.:@\#])[\w.:@\#-]{{3,40}}\w)"), ACCOUNT),
    (_make(r"(?<![\w:])(?P<value>(?:[0-9A-F]{2}[:-]){5}[0-9A-F]{2})(?![\w:-])"), NETWORK),
)  # fmt: skip
"""What is masked after the data that `masking` recognises by its English name, each with its placeholder."""


def replace_value(text: str, pattern: regex.Pattern[str], stands: str) -> str:
    """Return the text with the group `value` of each match replaced, and nothing else changed."""

    def put(match: regex.Match[str]) -> str:
        start, end = match.span("value")
        return match[0][: start - match.start()] + stands + match[0][end - match.start() :]

    return pattern.sub(put, text)
