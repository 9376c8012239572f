"""Values that the words before them call a secret: "password = …", "API key: …", "Authorization: Bearer …".

The name says how suspicious to be, the sign between name and value says how formal the statement is, and the value
must look like one. "=" is code, so nearly any value counts; ":" may be speech ("reset password: done"), so a plain
word counts only where it is the whole of the statement; "is" is speech, so the value must look like no word at all.
"""

import re
from dataclasses import dataclass
from enum import Enum

from memories.secret_filter import values
from memories.secret_filter.finding import Finding

_PASSWORD = (
    r"pass(?:words?|wd|wort|phrase|code)|passkey|pwd|pswd|kennwort|contrasena|senha|mot de passe|парол[ья]|密码|密碼|"
    "ハ\u309aスワート\u3099|requirepass|identified by|(?<![a-z])psk"
)
_KEY = (
    r"(?:api|access|secret|private|priv|encryption|encrypt|decryption|signing|sign|auth|account|master|storage|shared|"
    r"service|session|licen[cs]e|deploy|deployment|webhook|client|consumer|app|application|admin|root|ssh|rsa|aes|hmac|"
    r"jwt|crypto|subscription|integration|server|write|personal|developer|wpa|wi-?fi|security|recovery|vault|bot|"
    r"ingest|insert|routing|fernet|cipher|symmetric|pgp|gpg|vapid|product|activation)[ _.-]?keys?"
)
_TOKEN = (
    rf"secret|token|{_KEY}|credentials?|authorization|(?<![a-z])bearer|(?<![a-z])(?:creds|jwt|sid|phpsessid|jsessionid|"
    r"sessionid|session[ _-]?(?:id|cookie)|csrf|auth|oauth|cookie|x-auth|connection[ _-]?string|pat|pin|otp|totp|salt)(?![a-z])"
)
# Issuers whose credentials have no shape of their own: only a random value beside the name gives them away.
_ISSUER = (
    r"(?<![a-z])(?:adafruit|adobe|airtable|algolia|alibaba|amplitude|asana|atlassian|auth0|aws|azure|beamer|binance|"
    r"bitbucket|bitly|bittrex|bugsnag|cloudflare|cloudinary|codecov|cohere|coinbase|confluence|confluent|contentful|"
    r"datadog|deepgram|digitalocean|discord|droneci|dropbox|elastic|etherscan|etsy|facebook|fastly|finicity|finnhub|"
    r"firebase|flickr|freshbooks|freshdesk|gcp|gitter|gocardless|hellosign|heroku|hubspot|ibm|infura|intercom|jfrog|"
    r"jira|kraken|kucoin|launchdarkly|linkedin|loggly|looker|mailchimp|mailgun|mapbox|mattermost|meraki|messagebird|"
    r"mistral|netlify|new[ _-]?relic|nytimes|okta|opsgenie|pagerduty|pastebin|paypal|plaid|postmark|pusher|rapidapi|"
    r"replicate|rollbar|segment|sendbird|sentry|shodan|snyk|softlayer|sonar(?:qube)?|splunk|spotify|squarespace|sumo"
    r"(?:logic)?|supabase|telegram|travis|trello|twilio|twitch|twitter|typeform|vercel|virustotal|wandb|weatherapi|"
    r"yandex|zendesk|zoom)(?![a-z])"
)
_QUOTE = r"(?:\\{0,3}[\"'`]{1,3}|%22|&quot;|&#39;)"
_ABOUT = r"(?: (?:for|to|of|on|at|from|in)(?: [\w'./@-]{1,24}){1,4}?)?"
_SIGN = (
    r"(?P<equals>\s{0,3}(?:={1,3}>?|:=|\?=|->|%3d|:\s?[a-z][a-z\[\]|.]{0,16}\s?=)(?!=)\s{0,10})"
    r"|(?P<tag>>|\"\s{1,3}(?:value|content)\s?=\s?)"
    r"|(?P<colon>\s{0,3}(?::{1,2}|\||%3a)\s{0,20}(?:[|>]-?\s{1,20})?)"
    r"|(?P<call>(?<=[\"'`])\s{0,3},\s{0,5}|\s?\(\s?)(?=[\"'`])"
    r"|(?P<verb>,?\s{1,3}(?:is|was|are|will be|equals?|(?:set |changed |reset |updated )?to|as|has been)"
    r"(?: (?:set to|changed to|now|still|currently|called|simply|just|literally)){0,2}:?\s{1,10})"
    r"|(?P<space>\s{1,5})"
)
_ASSIGNMENT = re.compile(
    rf"(?:(?P<password>{_PASSWORD})|(?P<token>{_TOKEN})|(?P<issuer>{_ISSUER})|(?P<pass>(?<![a-z])pass(?![a-z])))"
    r"(?P<suffix>[a-z0-9_.-]{0,24}(?: (?:key|token|secret|id|value|string|code)(?![a-z])){0,2})"
    rf"(?P<close>[\])*_]{{0,3}}{_QUOTE}?[\])*_]{{0,3}}){_ABOUT}(?:{_SIGN})[*_]{{0,3}}"
    r"(?P<scheme>(?:bearer|basic|token|apikey|api-key|digest|bot|key)\s{1,3})?"
    rf"(?P<quote>{_QUOTE})?(?=(?P<value>[^\s\"'`<>]{{3,200}}))"
)
# Parts of a longer name that leave it a name for a secret: DB_PASSWORD_PROD, secret2, passwords.
_SAME_NAME = re.compile(
    r"s?[._ -]{0,2}(?:[0-9]{0,4}|(?:prod|production|dev|devel|development|test|testing|stage|staging|live|local|main|"
    r"primary|secondary|old|new|backup|master|admin|root|user|db|database|default|current|value|val|text|plain|key|"
    r"secret|token|password|hash|b64|base64|string|id|key[ _-]?id|hex|seed|pem|env|ci|bot|access|api)[0-9]{0,2})"
)
_SEED_PHRASE = re.compile(
    r"(?:(?:seed|recovery|mnemonic|secret|backup|wallet)[ _-](?:phrase|words|seed)|mnemonic)[^a-z\n]{0,6}(?:is|are|=|:)?"
    r"[\s\"'`:]{1,6}(?:[a-z]{3,8}[ ,]{1,2}){11}[a-z]{3,8}"
)
_PASSPHRASE = re.compile(
    r"(?:passphrase|password|passwort|pass phrase)[\"']?\s{0,2}(?:[:=]|is:?)\s{0,3}[\"'`]?"
    r"((?:[a-z]{3,10}[ -]){3,7}[a-z]{3,10})[\"'`]?\s{0,2}(?:[.!\n]|$)"
)
_COMMAND = re.compile(
    r"(?:curl|wget|http)[^\n|;]{0,120}?\s(?:-u|--user|-a)[ =]?[\"']?[^\s:\"'$-][^\s:\"']{0,64}:(?![$<{*/])([^\s\"']{3,200})"
    r"|(?:mysql|mysqldump|mysqladmin|mariadb|sshpass|docker login|podman login|redis-cli)[^\n|;]{0,100}?\s-(?:p|a) ?[\"']?"
    r"(?![$<{*])([^\s\"'-][^\s\"']{3,200})"
    r"|[\w.-]{1,64}:(?![$<{*])([^\s@/:\"']{3,100})@(?:tcp|unix)\("
    r"|jdbc:oracle:thin:[\w.-]{1,64}/(?![$<{*])([^\s@/\"']{1,100})@"
)


class _Sign(Enum):
    """How formal the statement is, most formal first."""

    EQUALS = 1
    COLON = 2
    VERB = 3
    SPACE = 4


@dataclass(frozen=True, slots=True)
class _Statement:
    """A name, a sign and a value found in the text, ready to be judged. Lives only while it is judged."""

    name: str  # as written, with its suffix
    same_name: bool  # the suffix leaves it a name for a secret
    sign: _Sign
    tight: bool  # no blank between sign and value
    quoted: bool
    json: bool  # name and value are both quoted
    value: str
    rest: str  # what follows the value, up to 40 characters


def find_assignment(text: str) -> Finding | None:
    """Return the first value in `text` (folded) that a name before it and its own looks make a credential."""
    lower = text.lower()
    if len(lower) != len(text):  # a few letters grow when lowered; positions must not move
        lower = "".join(low if len(low := char.lower()) == 1 else char for char in text)
    for match in _ASSIGNMENT.finditer(lower):
        start = match.start("value")
        value = values.trim(text[start : match.end("value")], quoted=bool(match["quote"]))
        if len(value) >= 3 and (kind := _judge(match, text, value)):
            return Finding(kind, start, start + len(value))
    for kind, pattern in (("seed_phrase", _SEED_PHRASE), ("command_password", _COMMAND)):
        if match := pattern.search(lower):
            return Finding(kind, match.start(), match.end())
    for match in _PASSPHRASE.finditer(lower):
        if values.is_passphrase(match[1]):
            return Finding("password", match.start(1), match.end(1))
    return None


def _judge(match: re.Match[str], text: str, value: str) -> str | None:
    """Return the kind of credential that a matched statement holds, or None."""
    if values.is_placeholder(value):
        return None
    end = match.start("value") + len(value)
    name_start = max(match.start() - 1, 0)
    statement = _Statement(
        name=text[name_start : match.end("suffix")],
        same_name=bool(_SAME_NAME.fullmatch(match["suffix"])),
        sign=_sign(match),
        tight=not text[match.start("value") - 1].isspace(),
        quoted=bool(match["quote"]) or match["tag"] is not None,
        json=bool(match["quote"] and match["close"]),
        value=value,
        rest=text[end : end + 40],
    )
    if match["issuer"]:
        formal = statement.sign in (_Sign.EQUALS, _Sign.COLON)
        return "named_key" if formal and values.is_random(value, at_least=16) else None
    if match["password"] or match["pass"]:
        if match["pass"] and not (statement.sign is _Sign.EQUALS or statement.json):
            return None
        return "password" if _is_password(statement) else None
    if match["scheme"] or match["token"] in ("authorization", "bearer"):
        is_header = match["token"] == "authorization" and len(value) >= 6 and not values.is_word(value)
        return "authorization" if is_header or values.is_random(value, at_least=10) else None
    return "secret" if _is_secret(statement) else None


def _sign(match: re.Match[str]) -> _Sign:
    if match["equals"] or match["tag"] or match["call"] is not None:
        return _Sign.EQUALS
    if match["colon"]:
        return _Sign.COLON
    return _Sign.VERB if match["verb"] else _Sign.SPACE


def _is_password(statement: _Statement) -> bool:
    """Passwords are short and often words, so the form of the statement decides what a value must look like."""
    value, rest = statement.value, statement.rest
    if not statement.same_name:
        return values.is_random(value, at_least=12)
    if statement.sign is _Sign.EQUALS:
        return statement.quoted or not values.is_code(value, rest)
    mixed = values.is_mixed(value, at_least=5)
    if statement.sign is _Sign.COLON:
        if statement.quoted:
            return not values.is_status(value) and len(value) >= 4
        alone = values.ends_statement(rest) and len(value) >= 4
        return not values.is_code(value, rest) and (mixed or (alone and not values.is_status(value)))
    if statement.sign is _Sign.VERB:
        number = value.isdigit() and len(value) >= 4 and values.ends_statement(rest)
        proper = value[0].isupper() and value.isalpha() and len(value) >= 5 and values.ends_statement(rest)
        return mixed or number or proper or (statement.quoted and rest[:1] in "\"'`" and len(value) >= 4)
    flag = "--" in statement.name or statement.name.isupper()
    return values.is_random(value, at_least=8) or (
        mixed and (flag or not values.is_word(value)) and len(value) >= 7
    )


def _is_secret(statement: _Statement) -> bool:
    """ "token", "secret" and "key" are ordinary words and names in code, so their values must look less like either."""
    value, rest = statement.value, statement.rest
    if not statement.same_name or value.isdigit():
        return values.is_random(value, at_least=16) or (
            value.isdigit() and len(value) >= 12 and statement.same_name
        )
    random = values.is_random(value, at_least=8)
    codelike = values.is_identifier(statement.name)
    if statement.sign is _Sign.EQUALS:
        if values.is_code(value, rest) and not statement.quoted:
            return random and not values.is_path(value)
        if statement.tight or statement.quoted:
            return len(value) >= 4
        return values.is_mixed(value, at_least=6) or (len(value) >= 6 and values.ends_statement(rest))
    if statement.sign is _Sign.COLON:
        if statement.json or (codelike and values.ends_statement(rest)):
            return len(value) >= 6 and not values.is_status(value) and not values.is_code(value, rest)
        return random
    if statement.sign is _Sign.VERB:
        return random or (statement.quoted and values.is_mixed(value, at_least=6))
    return values.is_random(value, at_least=16 if not codelike else 12)
