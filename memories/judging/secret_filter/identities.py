"""Which numbers a state gives a person: their words, their form, and python-stdnum's check of them. Data alone.

A form that no other number has is one wherever it stands (``SHAPES``); the others only behind a word for them
(``NAMED``). Check digits, dates and ranges inside are python-stdnum's, which follows the states' own rules. Said to be
it, a number of the form is one whether or not they are right, and so are the numbers of ``SAID``.
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

ONLY_VALID = "id_number"  # of anything else as well
AMBIGUOUS = {
    "ein",
    "sin",
}  # words of a language as well: a number right behind them ends its part of the sentence

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

# Of licences and cards, which every state numbers in its way: letters and digits, at least five of these, and no date.
_DATE = r"(?!(?:19|20)[0-9]{2}[-./][0-9]|[0-9]{1,2}[-./][0-9]{1,2}[-./](?:19|20)[0-9]{2})"
_LETTERED = (
    rf"(?<![0-9A-Za-z_./-]){_DATE}(?:[A-Z]{{1,3}}[ -])?(?=(?:[A-Z\u0410-\u042f]{{0,6}}[ ./-]?[0-9]){{5}})"
    r"[A-Z\u0410-\u042f]{0,6}[0-9][0-9A-Z\u0410-\u042f]{0,17}"
    r"(?:[./-][0-9A-Z]{1,12}| (?=[A-Z]{0,2}[0-9])[0-9A-Z]{1,12}){0,5}(?![0-9A-Za-z_€$%]|,[0-9])"
)

# (words, as above; the forms of its numbers). The number must be said to be it: nothing else tells.
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
