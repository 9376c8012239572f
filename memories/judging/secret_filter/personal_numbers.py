"""Personal numbers: cards, PINs, accounts, identity numbers, recovery codes and wallet keys.

They are not credentials: a person may confirm that one is stored, but nothing is stored automatically. A number of a
unique form with correct check digits is found anywhere, others only shortly after a word that names them ("SSN", "my
PIN is"). If their check digits are wrong, the text must also state that this is the number.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from stdnum import iban, luhn, numdb
from stdnum.be import nn
from stdnum.br import cpf
from stdnum.ca import sin
from stdnum.ch import ssn as ahv
from stdnum.cn import ric
from stdnum.de import idnr
from stdnum.dk import cpr
from stdnum.es import dni, nie
from stdnum.fi import hetu
from stdnum.fr import nir
from stdnum.gb import nhs, utr
from stdnum.in_ import aadhaar, pan
from stdnum.it import codicefiscale
from stdnum.jp import in_ as my_number
from stdnum.kr import rrn
from stdnum.mx import curp
from stdnum.nl import bsn
from stdnum.no import fodselsnummer
from stdnum.pl import pesel
from stdnum.pt import nif
from stdnum.ro import cnp
from stdnum.ru import inn
from stdnum.se import personnummer
from stdnum.tr import tckimlik
from stdnum.us import itin, ssn
from stdnum.za import idnr as za_idnr

from memories.judging.secret_filter.terms import Finding, choice_of, column, folded, same_length, spell_out

# Identity numbers by state: their names, their form, and python-stdnum's check. A number of a unique form counts
# anywhere (``SHAPES``), others only after one of their names (``NAMED``). If the text states that it is such a number,
# it counts even if the check fails, and so do the numbers of ``SAID``.

Check = Callable[[str], bool]


def _digits(*counts: int) -> str:
    """Return an expression for numbers with these digit counts, also separated by a space, a dot or a hyphen."""
    forms = "|".join(rf"[0-9](?:[ .-]{{0,2}}[0-9]){{{count - 1}}}" for count in sorted(counts)[::-1])
    return rf"(?<![0-9A-Za-z_.-])(?:{forms})(?![0-9])"


def any_number(number: str) -> bool:
    """Accept any number, for kinds without check digits."""
    return bool(number)


# (expression over folded text in upper case, check)
SHAPES: tuple[tuple[str, Check], ...] = (
    (r"[0-9]{3}-[0-9]{2}-[0-9]{4}", ssn.is_valid),
    (r"[A-Z]{6}[0-9LMNP-V]{2}[ABCDEHLMPRST][0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{3}[A-Z]", codicefiscale.is_valid),
    (r"[1-9][0-9]{5}(?:19|20)[0-9]{9}[0-9X]", ric.is_valid),
    (r"[12][0-9]{2}(?:0[1-9]|1[0-2])(?:[0-9]{2}|2[AB])[0-9]{8}", nir.is_valid),
    (r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}", cpf.is_valid),
    (r"[0-9]{6}-[1-8][0-9]{6}", rrn.is_valid),
    (r"756[.][0-9]{4}[.][0-9]{4}[.][0-9]{2}", ahv.is_valid),
    (r"[A-Z]{4}[0-9]{6}[HM][A-Z]{5}[0-9A-Z][0-9]", curp.is_valid),
)

ONLY_VALID = "id_number"  # a general name, so numbers count only if the check succeeds
# Also ordinary words, so a number right after them must end its clause.
AMBIGUOUS = {"ein", "sin"}

# (names separated by spaces, with "_" for a space inside; forms over folded upper-case text, with checks)
NAMED: tuple[tuple[str, tuple[tuple[str, Check], ...]], ...] = (
    (r"ssn social_security(?:_(?:number|no\.?))?", ((_digits(9), ssn.is_valid),)),
    ("itin", ((_digits(9), itin.is_valid),)),
    (r"nhs_(?:number|no\.?)", ((_digits(10), nhs.is_valid),)),
    ("utr taxpayer_reference", ((_digits(10), utr.is_valid),)),
    ("national_insurance ni_number nino", ((r"[A-Z]{2}(?: ?[0-9]{2}){3} ?[A-D]", any_number),)),
    ("social_insurance", ((_digits(9), sin.is_valid),)),
    (
        r"steuer-?_?id(?:nr\.?)? (?:steuer|steuerliche_)?identifikationsnummer",
        ((_digits(11), idnr.is_valid),),
    ),
    (
        "ahv(?:-?nummer|-?nr)? (?:sozial|renten)versicherungsnummer",
        ((_digits(13), ahv.is_valid), (r"[0-9]{2} ?[0-9]{6} ?[A-Z] ?[0-9]{3}", any_number)),
    ),
    (
        "dni nif contribuinte",
        ((r"[0-9]{2}\.?[0-9]{3}\.?[0-9]{3}[ -]?[A-Z](?!\w)", dni.is_valid), (_digits(9), nif.is_valid)),
    ),
    ("nie", ((r"[XYZ][ -]?[0-9]{7}[ -]?[A-Z](?!\w)", nie.is_valid),)),
    ("sécurité_sociale sécu nir", ((r"[12](?:[ .]?[0-9AB]){14}(?![0-9])", nir.is_valid),)),
    ("cpf", ((_digits(11), cpf.is_valid),)),
    ("bsn burgerservicenummer sofinummer", ((_digits(9), bsn.is_valid),)),
    ("rijksregisternummer registre_national", ((_digits(11), nn.is_valid),)),
    ("pesel", ((_digits(11), pesel.is_valid),)),
    (r"kimlik tckn t\.?c\.?_no", ((_digits(11), tckimlik.is_valid),)),
    ("инн", ((_digits(10, 12), inn.is_valid),)),
    ("снилс", ((_digits(11), any_number),)),
    ("aadhaar aadhar आधार_(?:नंबर|संख्या|कार्ड) आधार", ((_digits(12), aadhaar.is_valid),)),
    ("pan पैन", ((r"[A-Z]{5}[0-9]{4}[A-Z](?!\w)", pan.is_valid),)),
    ("身份证 身份證", ((r"[0-9]{17}[0-9X]", ric.is_valid),)),
    ("マイナンバー 個人番号", ((_digits(12), my_number.is_valid),)),
    ("주민_?등록_?번호 주민번호", ((_digits(13), rrn.is_valid),)),
    ("cccd cmnd căn_cước chứng_minh_nhân_dân", ((_digits(9, 12), any_number),)),
    (
        "personnummer fødselsnummer",
        ((_digits(10, 12), personnummer.is_valid), (_digits(11), fodselsnummer.is_valid)),
    ),
    ("cpr(?:-nummer)?", ((_digits(10), cpr.is_valid),)),
    ("henkilötunnus hetu", ((r"[0-9]{6}[-+A][0-9]{3}[0-9A-Y](?!\w)", hetu.is_valid),)),
    ("cnp cod_numeric_personal", ((_digits(13), cnp.is_valid),)),
    (ONLY_VALID, ((_digits(13), za_idnr.is_valid),)),
    ("رقم_الهوية الهوية_الوطنية الإقامة", ((_digits(10), luhn.is_valid),)),
)

# Numbers of licences and cards, which vary by state: letters and at least five digits, and no date.
_DATE = r"(?!(?:19|20)[0-9]{2}[-./][0-9]|[0-9]{1,2}[-./][0-9]{1,2}[-./](?:19|20)[0-9]{2})"
_LETTERED = (
    rf"(?<![0-9A-Za-z_./-]){_DATE}(?:[A-Z]{{1,3}}[ -])?(?=(?:[A-Z\u0410-\u042f]{{0,6}}[ ./-]?[0-9]){{5}})"
    r"[A-Z\u0410-\u042f]{0,6}[0-9][0-9A-Z\u0410-\u042f]{0,17}"
    r"(?:[./-][0-9A-Z]{1,12}| (?=[A-Z]{0,2}[0-9])[0-9A-Z]{1,12}){0,5}(?![0-9A-Za-z_€$%]|,[0-9])"
)

# (names as above; forms). The text must state that this is the number, because there are no check digits.
SAID: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        r"ssn social_security_(?:number|no\.?) sozialversicherungsnummer seguridad_social seguro_social"
        r" segurança_social sécurité_sociale previdenza_sociale ubezpieczenia_społecznego sosyal_güvenlik"
        r" социального_страхования الضمان_الاجتماعي सामाजिक_सुरक्षा 社会安全 社会保险 社保 社会保障番号 社会保障"
        r" 사회보장_?번호 an_sinh_xã_hội bảo_hiểm_xã_hội itin",
        (_digits(9, 10, 11, 12, 15),),
    ),
    (
        r"ein employer_identification(?:_(?:number|no\.?))? federal_tax_id(?:_number)?",
        (r"(?<![0-9A-Za-z_.-])[0-9]{2}-?[0-9]{7}(?![0-9])",),
    ),
    (
        r"sin social_insurance(?:_(?:number|no\.?))? assurance_sociale tfn tax_file(?:_(?:number|no\.?))?",
        (_digits(9),),
    ),
    (
        r"tax(?:payer)?_(?:identification|id)"
        r" steuer-?_?(?:id|nummer|nr\.?|identifikationsnummer) steueridentifikationsnummer"
        r" número_fiscal numéro_fiscal codice_fiscale nip numer_podatkowy vergi_(?:kimlik_)?(?:no|num\w{1,6})"
        r" налогов(?:ый|ого)_номер الرقم_الضريبي 税号 纳税人识别号 納税者番号 납세자_?번호 mã_số_thuế",
        (_digits(*range(9, 14)), r"[0-9]{2,3}/[0-9]{3,4}/[0-9]{4,5}(?![0-9])", _LETTERED),
    ),
    (
        r"national_id(?:entity)?(?:_(?:card|number|no\.?))? identity_card id_card personalausweis(?:es|nummer)?"
        r" ausweisnummer documento_de_identidad cédula carte(?:_nationale)?_d'identité"
        r" cartão_de_cidadão rg carta_d'identità(?:_elettronica)?"
        r" identiteitskaart dow[oó]d(?:u)?_osobist(?:y|ego) kimlik удостоверение_личности البطاقة_الشخصية الرقم_القومي"
        r" पहचान_पत्र 身份证 身分証 주민등록증 chứng_minh_(?:thư|nhân_dân) căn_cước",
        (_LETTERED,),
    ),
    (
        r"driv(?:er'?s?|ers'|ing)_licen[cs]e führerschein(?:nummer|nr\.?)? (?:carnet|permiso|licencia)_de_conducir"
        r" permis_de_conduire carta_de_condução cnh (?:carteira|habilitação)_de_motorista patente(?:_di_guida)?"
        r" rijbewijs(?:nummer)? prawo_jazdy prawa_jazdy ehliyet(?:im|i)? sürücü_belgesi"
        r" водительско(?:е|го)_удостоверени[ея] водительские_права رخصة_القيادة ड्राइविंग_लाइसेंस"
        r" 驾照 驾驶证 驾驶执照 駕照 運転免許(?:証)? 免許証 운전면허(?:증)? giấy_phép_lái_xe bằng_lái(?:_xe)?",
        (_LETTERED,),
    ),
)


_WORTH_IT = re.compile(r"[0-9](?:[^0-9]{0,3}[0-9]){2}")  # no personal number has fewer than three digits
_REACH, _LONGEST = 48, 40  # maximum characters between a word and its number, and of a number


def find_personal(text: str) -> Finding | None:
    """Return the first personal number in `text` (folded), or None."""
    if not _WORTH_IT.search(text):
        return None
    upper, lower = same_length(text, str.upper), same_length(text, str.lower)
    return find_shaped(upper) or _find_named(lower, upper) or _find_backwards(lower)


# Numbers after a word for them


_JOINED = re.compile("[\u1100-\u11ff\u3040-\u30ff\u4e00-\u9fff]")  # scripts without spaces


def _any_of(words: list[str]) -> str:
    """Return an expression for any of the words. It matches whole words only, except in scripts without spaces."""
    apart = [spelled for word in words if not _JOINED.search(word) for spelled in spell_out(word)]
    joined = [spelled for word in words if _JOINED.search(word) for spelled in spell_out(word)]
    return (
        rf"(?<![^\W\d_])(?=[^\W\d_])(?:{choice_of(apart)})(?![^\W\d_])"
        + rf"|(?=[^\x00-\x7f]|pin)(?:{choice_of(joined)})" * bool(joined)
    )


_OF = "|".join([*column("of"), *column("whose"), *column("card"), "bancomat"])
_EQUALS = "|".join(column("equals"))
_ARTICLE = "el|la|le|il|a|o|die|the"
_ATTACHED = "|".join(column("attached"))
# The text between a word and its number: the purpose and then "is", or a sign.
_SAYS_SO = re.compile(
    rf"[\"'`*_)\]]{{0,3}}(?:(?: (?:{_OF})(?![^\W\d_])(?: [^\s0-9:=]{{1,20}}){{0,4}}?| \u0644[^\W\d_]{{1,20}})?"
    rf"(?:\s?[:=|]\s{{0,3}}|\s{{1,2}}(?:-{{1,2}}>?|[\u2192\u21d2])\s{{1,2}}"
    rf"|(?:'s|,?(?: (?:{_EQUALS})){{1,2}}(?: (?:{_ARTICLE}))?) ?:?\s{{1,3}})|\s?(?:{_ATTACHED}):?\s?)[\"'`*_(\[]{{0,3}}"
)
_ALMOST_NOTHING = re.compile(r"[\s\"'`*_(-]{0,3}")
_LOOSELY = re.compile(r"[^0-9.!?]{0,32}")
_ENDS = re.compile(
    rf"[\"'`*_)\]#]{{0,4}}\s{{0,3}}(?:$|[\n,;!?|(]|\.(?:\s|$)|(?:{'|'.join(column('after'))}))"
)

# The same for an identity number, whose name may be followed by "number", brackets or its owner.
_NUMBER_WORD = "|".join(column("number"))
_SAYS_ID = re.compile(
    rf"(?:[ _-]?(?:{_NUMBER_WORD}))?(?: \([^)0-9\n]{{1,24}}\))?(?: (?:{'|'.join(column('own'))}))?"
    rf"(?:{_SAYS_SO.pattern}|[\s\"'`*_(#|-]{{0,4}})"
)

_CARD_WORD = re.compile(_any_of(column("card") + column("cvv")))
_BANK = re.compile(
    r"(?:sort[ -]?code|blz|bankleitzahl|routing(?: (?:number|no\.?))?|bsb|ifsc)[^0-9\n]{0,12}[0-9]{2}"
    r"|ifsc[: ]{1,2}[a-z]{4}0"
)
_YEAR = re.compile("(?:19|20)[0-9]{2}")


def _luhn(number: str) -> bool:
    return len(number) >= 12 and bool(luhn.is_valid(number))


@dataclass(frozen=True, slots=True)
class _Named:
    """A kind of number that counts only after one of ``words``, in one of ``forms``."""

    kind: str
    words: list[str]
    forms: tuple[tuple[re.Pattern[str], Check], ...]
    said: bool = False  # the text must also state that this is the number, because it has no check digits
    near: re.Pattern[str] | None = None  # the word counts only if this pattern matches near it
    loosely: bool = False  # any text may stand between word and number, up to the end of the sentence
    states: bool = False  # issued by a state: if the text says so, counts even if the check fails


def _form(expression: str, check: Check = any_number) -> tuple[tuple[re.Pattern[str], Check], ...]:
    return ((re.compile(expression), check),)


def _nothing(number: str) -> bool:
    """Reject every number, for kinds that count only if the text states what the number is."""
    return False


_NOT_MORE = r"(?![0-9A-Z_%$€£\u5186\u4e2a\u500b\u5e74\u5143\u4e07]|[.,:/-][0-9])"
_SHORT = rf"(?<![0-9A-Za-z_.,-])(?:[0-9]{{4,8}}|[0-9](?:[ -][0-9]){{3,7}}){_NOT_MORE}"
_CODE = (
    r"(?<![\w-])(?:(?=[A-Z-]{0,12}[0-9])[A-Z0-9]{3,10}(?:-[A-Z0-9]{3,10}){1,7}|[0-9]{4}(?: [0-9]{4}){1,7}"
    r"|[0-9]{6,12}|(?=[A-Z]{0,31}[0-9])(?=[0-9]{0,31}[A-Z])[A-Z0-9]{8,32})(?![\w-])"
)
_RULES = (
    _Named("cvv", column("cvv"), _form(rf"(?<![\w.,-])[0-9]{{3,4}}{_NOT_MORE}"), said=True),
    _Named(
        "cvv", column("check"), _form(rf"(?<![\w.,-])[0-9]{{3,4}}{_NOT_MORE}"), near=_CARD_WORD, loosely=True
    ),
    _Named("pin", column("pin"), _form(_SHORT), said=True),
    _Named("pin", column("door"), _form(_SHORT), said=True),
    _Named("recovery_code", column("recovery"), _form(_CODE), loosely=True),
    _Named(
        "passport",
        column("passport"),
        _form(r"(?<!\w)(?:[0-9]{4} ?[0-9]{6}|(?=(?:[A-Z]{0,3}[0-9]){4})[A-Z0-9]{7,9})(?![\w-])"),
        said=True,
    ),
    _Named(
        "card", column("card"), _form(r"(?<![\w.])[0-9](?:[ ./_\u00b7\n-]{0,2}[0-9]){11,18}(?![0-9])", _luhn)
    ),
    _Named("iban", column("bank"), _form(r"(?<![\w.,-])[0-9]{6,12}(?![\w-])"), near=_BANK, loosely=True),
    *(
        _Named(
            "national_id",
            folded(words),
            tuple((re.compile(form), check) for form, check in forms),
            states=words != ONLY_VALID,
        )
        for words, forms in (
            *NAMED,
            *((words, tuple((form, _nothing) for form in forms)) for words, forms in SAID),
        )
    ),
)
_NUMBER = re.compile("[0-9]+")


@cache
def _word() -> re.Pattern[str]:
    """Return the pattern of all words that name a kind of number, compiled on first use, because this takes a while."""
    words = {word for rule in _RULES for word in rule.words}
    return re.compile(_any_of(sorted(words, key=len, reverse=True)))


@lru_cache(maxsize=1000)
def _rules_of(word: str) -> tuple[_Named, ...]:
    """Return the rules for a word: the first that lists it, and all further ones for numbers that states issue."""
    rules = (rule for rule in _RULES if re.fullmatch("|".join(rule.words), word))
    first = next(rules)
    return (first, *(rule for rule in rules if rule.states))


def _words(lower: str) -> Iterator[re.Match[str]]:
    """Yield the words that announce a number and have one shortly after them."""
    begun = end = 0
    for number in _NUMBER.finditer(lower):
        if number.start() - _REACH - _LONGEST > end:
            yield from _word().finditer(lower, begun, end)
            begun = number.start() - _REACH - _LONGEST
        end = number.start()
    yield from _word().finditer(lower, begun, end)


def _find_named(lower: str, upper: str) -> Finding | None:
    spent = 0
    for word in _words(lower):
        spent += JUDGED
        if spent > ALLOWANCE + word.end():
            return Finding("too_many_numbers", *word.span())
        for rule in _rules_of(word.group()):
            for form, check in rule.forms:
                number = form.search(upper, word.end(), word.end() + _REACH + _LONGEST)
                if number is None or number.start() > word.end() + _REACH:
                    continue
                is_valid = check(number.group().translate(SEPARATORS)) and _is_it(rule, word, number, lower)
                if is_valid or (rule.states and _is_said(word, number, lower)):
                    return Finding(rule.kind, *number.span())
    return None


def _is_said(word: re.Match[str], number: re.Match[str], lower: str) -> bool:
    """Return whether the text states that the number is the identity number named by ``word``."""
    if word.group() in AMBIGUOUS and _ALMOST_NOTHING.fullmatch(lower, word.end(), number.start()):
        return bool(_ENDS.match(lower, number.end()))
    return bool(_SAYS_ID.fullmatch(lower, word.end(), number.start()))


# Numbers before their word: "4711 is my PIN".
@cache
def _backwards() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns for a PIN and an identity number that stand before their word, compiled on first use."""
    codes = _any_of(column("pin") + column("door"))
    states = _any_of([word for rule in _RULES if rule.states for word in rule.words])
    return (
        re.compile(_BEFORE % ("[0-9]{4,8}", codes)),
        re.compile(_BEFORE % (r"[0-9]{2,12}(?:[ .-][0-9]{2,12}){0,4}(?<=[0-9 .-]{9})", states)),
    )


_BEFORE = (
    rf"(?<![\w.,-])(?P<number>%s)[\"'`]?,? (?:{_EQUALS}) (?:(?!not )[^\W\d_]{{1,12}} ){{0,3}}?"
    rf"(?:%s)(?:{_ENDS.pattern}| (?:{_OF})(?![^\W_]))"
)


def _find_backwards(lower: str) -> Finding | None:
    for kind, pattern in zip(("pin", "national_id"), _backwards(), strict=True):
        if match := pattern.search(lower):
            return Finding(kind, *match.span("number"))
    return None


def _is_it(rule: _Named, word: re.Match[str], number: re.Match[str], lower: str) -> bool:
    """Return whether the number is of the kind that ``word`` names, judging by the text between and around them."""
    between = lower[word.end() : number.start()]
    around = lower[max(word.start() - AROUND, 0) : number.end() + AROUND]
    if rule.kind == "pin" and is_postal(word.group(), number.group(), around):
        return False
    if rule.near and (not rule.near.search(around) or _YEAR.fullmatch(number.group())):
        return False
    if rule.loosely:
        return bool(_LOOSELY.fullmatch(between))
    if not rule.said:
        return not re.search(r"\n[^\n]*[^\W\d_]", between)  # text on its line: not about the word
    if _SAYS_SO.fullmatch(between):
        return True
    return bool(_ALMOST_NOTHING.fullmatch(between) and _ENDS.match(lower, number.end()))


# Numbers recognized anywhere by their form and check digits

# In characters: the cost of judging allowed beyond the text's length, and the cost of one candidate.
ALLOWANCE, JUDGED = 32_768, 64
AROUND = 60  # characters around a number that may name what it belongs to
SEPARATORS = str.maketrans("", "", " .-/_\u00b7\n")


# Prefixes and lengths of card numbers: American Express, Diners, Visa, Mastercard, Discover, JCB, UnionPay, Maestro.
_ISSUED = re.compile(
    r"3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:4|5[0-8]|6[0-9]|35)[0-9]{14,15}|62[0-9]{14,17}"
    r"|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}"
)
_SIGN = r"[ ./_\u00b7\n-]{1,2}"
_CARD = re.compile(
    rf"(?<![\w.,/-])(?:[0-9]{{4}}(?:{_SIGN}[0-9]{{4}}){{3}}(?:{_SIGN}[0-9]{{1,3}})?"
    rf"|[0-9]{{4}}{_SIGN}[0-9]{{6}}{_SIGN}[0-9]{{4,5}}|[0-9]{{8}}\n[0-9]{{8}}|[0-9]{{14,19}}"
    r"|[0-9]{2}(?P<two>[ .-])[0-9]{2}(?:(?P=two)[0-9]{2}){6}|[0-9](?P<one>[ .-])[0-9](?:(?P=one)[0-9]){12,17}"
    r")(?![\w]|[.,-][0-9])"
)
_OF_A_PHONE = re.compile(r"\bIMEI(?:[ -]?(?:NUMBER|NO\.?|NUMMER))?(?: IS| IST)?[\s:=#]{0,3}\Z")
_IBAN = re.compile(
    r"(?<![A-Z0-9])(?=([A-Z]{2}[0-9]{2}(?:[ ./_\u00b7\n-]{0,2}[A-Z0-9]{2}){5,15}[A-Z0-9]?))[A-Z]{2}[0-9]{2}"
)
_IDENTITY = re.compile(rf"(?<![\w.-])(?:{'|'.join(f'({form})' for form, _ in SHAPES)})(?!\w|-[0-9])")
_BITLOCKER = re.compile(r"(?<![\w-])[0-9]{6}(?:-[0-9]{6}){7}(?![\w-])")
_WALLET_KEY = re.compile(r"(?<![0-9A-Z])(?:0X)?[0-9A-F]{64}(?![0-9A-Z])")
_OF_A_WALLET = re.compile(
    r"wallet|metamask|ethereum|\beth\b|bitcoin|\bbtc\b|solana|trezor|krypto|crypto|portefeuille|кошел|钱包|지갑"
)
_PUBLIC_HASH = re.compile(r"transa|\btx|hash|sha-?256|block|digest|commit|checksum|public")


def _card(match: re.Match[str]) -> int:
    number = match.group().translate(SEPARATORS)
    if _OF_A_PHONE.search(match.string, max(match.start() - AROUND, 0), match.start()):
        return 0
    return len(match.group()) if _ISSUED.fullmatch(number) and luhn.is_valid(number) else 0


def _iban(match: re.Match[str]) -> int:
    """Return the length of the IBAN at the match, which its country code determines, or 0 if there is none."""
    candidate, wanted = match[1], _iban_length(match[1][:2])
    end = 0
    while wanted and end < len(candidate):
        wanted -= candidate[end].isalnum()
        end += 1
    whole = not wanted and not match.string[match.start() + end : match.start() + end + 1].isalnum()
    return end if end and whole and iban.is_valid(candidate[:end].translate(SEPARATORS)) else 0


@cache
def _iban_length(country: str) -> int:
    """Return the number of characters of the country's IBANs, or 0 if it has none."""
    known: list[tuple[str, dict[str, str]]] = numdb.get("iban").info(country)
    form = known[0][1].get("bban", "") if known else ""
    return 4 + sum(map(int, re.findall("[0-9]+", form))) if form else 0


def _identity(match: re.Match[str]) -> int:
    _, is_valid = SHAPES[(match.lastindex or 1) - 1]
    return len(match.group()) if is_valid(match.group()) else 0


def _wallet_key(match: re.Match[str]) -> int:
    """Return the length of the wallet key at the match, or 0 if the words around it do not name a wallet."""
    around = match.string[max(match.start() - AROUND, 0) : match.end() + AROUND].lower()
    return len(match.group()) if _OF_A_WALLET.search(around) and not _PUBLIC_HASH.search(around) else 0


_SHAPED: tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], int]], ...] = (
    ("card", _CARD, _card),
    ("iban", _IBAN, _iban),
    ("national_id", _IDENTITY, _identity),
    ("recovery_code", _BITLOCKER, lambda match: len(match.group())),
    ("wallet_key", _WALLET_KEY, _wallet_key),
)


def find_shaped(upper: str) -> Finding | None:
    """Return the first number that its form and check digits show, in a folded upper-case text, or None."""
    for kind, pattern, length_of in _SHAPED:
        spent = 0
        for match in pattern.finditer(upper):
            if length := length_of(match):
                return Finding(kind, match.start(), match.start() + length)
            spent += JUDGED
            if spent > ALLOWANCE + match.end():
                return Finding("too_many_numbers", *match.span())
    return None


# Postal codes that are called PIN: India's, of six digits.

_POSTAL_CODE = re.compile("[1-8][0-9]{5}")
_PLACE = re.compile(
    r"\b(?:area|postal|post|zip|city|town|locality|delivery)(?:'s)? pin|pin ?code \w{2,3} (?!my|our|the|your|a\b)"
    r"(?![^0-9]{0,24}\b(?:card|visa|bank|sim|phone|account|app|alarm|door|gate|safe|house|laptop|debit|credit)\b)[a-z]"
    r"|[0-9]{6} ?\((?!bank|card|sim|phone|door|alarm|home|work|safe)[a-z]{3,20}\)"
)


def is_postal(word: str, number: str, around: str) -> bool:
    """Return whether a number that the text calls a PIN is an Indian postal code, and not a secret.

    It is if it has six digits and ``around``, the text near it, names a place. ``word``: the word for it in the text,
    in lower case.
    """
    return word.startswith("pin") and bool(_POSTAL_CODE.fullmatch(number) and _PLACE.search(around))
