"""Which numbers a state gives a person: their words, their form, and python-stdnum's check of them. Data alone.

A form that no other number has is one wherever it stands (``SHAPES``); the others only behind a word for them
(``NAMED``). Check digits, dates and ranges inside are python-stdnum's, which follows the states' own rules.
"""

from __future__ import annotations

from collections.abc import Callable

from stdnum import luhn
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

Check = Callable[[str], bool]


def _digits(*counts: int) -> str:
    """So many digits, apart by a blank, a dot or a hyphen at will."""
    forms = "|".join(rf"[0-9](?:[ .-]{{0,2}}[0-9]){{{count - 1}}}" for count in sorted(counts)[::-1])
    return rf"(?<![0-9A-Za-z_.-])(?:{forms})(?![0-9])"


def any_number(number: str) -> bool:
    """For numbers without a check digit: their word and their form must do."""
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

# (words, apart by blanks, "_" for one inside; the forms of its numbers over folded text in upper case, with checks)
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
    ("aadhaar aadhar आधार", ((_digits(12), aadhaar.is_valid),)),
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
    ("id_number", ((_digits(13), za_idnr.is_valid),)),
    ("رقم_الهوية الهوية_الوطنية الإقامة", ((_digits(10), luhn.is_valid),)),
)
