"""The words that announce a credential or a personal number, by language, and the expressions that search for them."""

import html
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """A credential or number of `kind` at text[start:end]. It intentionally contains no part of the text."""

    kind: str
    start: int
    end: int


# Normalization of text before the rules are applied, which undoes ways to disguise a credential.

_CHUNK = 64  # NFKD takes quadratic time for runs of combining marks, so it is applied to short chunks

# Invisible characters: soft hyphen, combining joiner, fillers, zero-width and bidi controls, tags, selectors.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_COMBINING = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]")
# Characters that stand for whole words and are never part of a credential.
_WORD_SIGNS = re.compile("[\u3200-\u33ff\ufb50-\ufdff]")
_ESCAPE = re.compile(r"\\[nrt]|\\/|\\u00[2-7][0-9a-fA-F]")
_ENTITY = re.compile(r"&(?:#[0-9]{1,6}|#[xX][0-9a-fA-F]{1,5}|[A-Za-z]{2,8});")
# Arabic and Hindi.
_DIGITS = "".join(chr(zero + number) for zero in (0x660, 0x6F0, 0x966) for number in range(10))
# Cyrillic and Greek letters that look like Latin ones, and typographic dashes, quotes and colons.
_LOOKALIKES = str.maketrans(
    "\u0410\u0412\u0415\u0405\u0406\u0408\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0423"
    "\u0430\u0435\u0455\u0456\u0458\u043e\u0440\u0441\u0445\u0443\u0501\u04bb\u04cf"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf"
    "\u2010\u2011\u2012\u2013\u2014\u2212\u2236\ua789\u201c\u201d\u201e\u00ab\u00bb\u2018\u2019" + _DIGITS,
    'ABESIJKMHOPCTXYaesijopcxydhlABEZHIKMNOPTYXo------::"""""\'\'' + 3 * "0123456789",
)


def _unescape(match: re.Match[str]) -> str:
    escape = match.group()
    if escape[1] == "u":
        return chr(int(escape[2:], 16))
    return "/" if escape[1] == "/" else " "


def fold(text: str) -> str:
    """Return `text` normalized for searching, in ASCII as far as possible.

    Removes invisible characters and accents. Turns compatibility forms and letters that look like Latin ones into
    ASCII. Resolves HTML entities and JSON string escapes once.
    """
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity.group()), text)
    if not text.isascii():
        visible = _WORD_SIGNS.sub("*", _INVISIBLE.sub("", text))
        chunks = (visible[at : at + _CHUNK] for at in range(0, len(visible), _CHUNK))
        text = "".join([unicodedata.normalize("NFKD", chunk) for chunk in chunks])
        text = _COMBINING.sub("", text).translate(_LOOKALIKES)
    if "\\" in text:
        text = _ESCAPE.sub(_unescape, text)
    return text


def same_length(text: str, change: Callable[[str], str]) -> str:
    """Return the text in another case, but for letters that would become several. ``change``: ``str.lower``, …"""
    changed = change(text)
    if len(changed) == len(text):
        return changed
    return "".join(new if len(new := change(char)) == 1 else char for char in text)


def original_span(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the shortest span of `text` whose folded form covers fold(text)[start:end]."""

    def original(position: int) -> int:
        low, high = 0, len(text)
        while low < high:
            middle = (low + high) // 2
            if len(fold(text[:middle])) <= position:
                low = middle + 1
            else:
                high = middle
        return max(low - 1, 0)

    first = original(start)
    return first, max(first, original(end - 1)) + 1


# Joining of many expressions into one that reads each position of a text once

# A few alternative characters or words at the beginning of a rule.
_LISTED = re.compile(r"(?:\[([A-Za-z0-9]+)\]|\(\?:([\w|-]+)\))(?![{?*+])")
_PLAIN = re.compile(r"[\w-](?![{?*+])")


def choice_of(rules: list[str], shared: int = 0) -> str:
    """Return an expression for any of the rules, whose first `shared` characters are equal.

    Rules are grouped by their common prefixes, so that most are rejected by a single comparison.
    """
    branches: dict[str, list[str]] = {}
    for rule in dict.fromkeys(rules):
        plain = _PLAIN.match(rule, shared)
        branches.setdefault(rule[: shared + 1] if plain else rule, []).append(rule)
    return "|".join(
        f"(?:{choice_of(branch, shared + 1)})" if len(branch) > 1 else branch[0]
        for branch in branches.values()
    )


def spell_out(rule: str) -> list[str]:
    """Return a copy of the rule for each alternative at its beginning: "[ab]c" gives "ac" and "bc"."""
    if match := _LISTED.match(rule):
        return [first + rule[match.end() :] for first in match[1] or match[2].split("|")]
    return [rule]


# The columns. login: words for the account of a login pair. password: words for a password. weak: words that may also
# mean something else. equals: "is", "reads", … between a word and its value, separated by spaces. attached: the same
# without a space before it. of: what introduces the purpose ("password for the wifi"). whose: possessives. bank: an
# account, which counts only near a bank's number. pin: a short code that opens something. card, cvv, check:
# payment cards; a check counts only near a card. recovery: codes that replace a second factor. passport: passports
# and identity cards. number, own: what may follow the name of an identity number. after: what may end a statement
# after its value, as a verb does in Hindi.
LANGUAGES: dict[str, dict[str, str]] = {
    "en": {
        "login": "login log-?in logins user(?:name|id)? usr account",
        "password": r"pass(?:words?|wd|phrase|code) passkey pwd pswd",
        "equals": "is was are equals? will_be (?:set_|changed_|reset_|updated_)?to as has_been",
        "of": "for to of on at from in",
        "bank": "(?:bank_)?acc(?:oun)?t(?:_(?:number|no\\.?))?",
        "whose": "my our your his her their",
        "pin": "pin pin_?code pin_number passcode puk",
        "door": "(?:door|gate|alarm|entry|garage|lock|safe|unlock|screen)_?code combination",
        "card": "cards? visa mastercard amex maestro",
        "cvv": "cvv2? cvc2? card_verification card_security_code",
        "check": "security_code verification_code",
        "recovery": "(?:recovery|backup|rescue|emergency|scratch)_(?:codes?|keys?)",
        "passport": "passport(?:_number|_no\\.?)?",
        "number": "numbers? no\\.? nos? nr\\.? #",
    },
    "de": {
        "login": "benutzer(?:name)? nutzer(?:name)? zugang",
        "password": "passwort kennwort passwoerter wlan-?schlüssel netzwerk-?schlüssel wifi-?schlüssel",
        "bank": "konto(?:nummer|nr\\.?)? kto\\.?",
        "equals": "ist war lautet heisst heißt bleibt",
        "of": "für vom von zum zur zu des der im fürs beim",
        "whose": "meiner meines meinem unserer unseres deiner",
        "pin": "geheimzahl pin-nummer",
        "door": "(?:tür|haustür|alarm|tor|zugangs)_?code",
        "card": "(?:kredit|ec-?|bank|giro)?_?karten?",
        "cvv": "kartenprüfnummer prüfnummer kartenprüfziffer",
        "check": "sicherheitscode",
        "recovery": "wiederherstellungs_?(?:codes?|schlüssel) backup-codes? ersatzcodes?",
        "passport": "reisepass(?:nummer|nr\\.?)? ausweisnummer personalausweisnummer",
        "number": "nummer nr\\.?",
    },
    "es": {
        "login": "usuario",
        "password": "contraseñas? contrasenya clave_(?:de|del)_(?:la_)?(?:red|wi-?fi)",
        "weak": "clave",
        "equals": "es era son sera",
        "of": "de del para el la",
        "whose": "mi tu su",
        "pin": "número_pin clave_de_la_tarjeta",
        "door": "código_de_la_(?:puerta|alarma)",
        "card": "tarjetas?",
        "cvv": "código_cvv",
        "check": "código_de_seguridad",
        "recovery": "(?:códigos?|claves?)_de_(?:recuperación|respaldo)",
        "passport": "pasaporte",
        "number": "número num\\.? n[.°º]*",
    },
    "fr": {
        "login": "identifiant utilisateur",
        "password": "mots?_de_passe mdp",
        "equals": "est etait c'est sera",
        "of": "de du des pour la le d' de_la",
        "whose": "ma mon sa",
        "pin": "code_pin code_secret code_confidentiel",
        "door": "code_de_la_porte digicode code_de_l'alarme",
        "card": "carte(?:_bancaire|_bleue)?",
        "cvv": "cryptogramme",
        "check": "code_de_sécurité",
        "recovery": "codes?_de_(?:secours|récupération) clés?_de_(?:secours|récupération)",
        "passport": "passeport",
        "number": "numéro n[.°º]*",
    },
    "pt": {
        "login": "usuário utilizador",
        "password": "senhas? palavra-passe",
        "equals": "é era são será",
        "of": "de do da para o a no na",
        "whose": "meu minha",
        "pin": "senha_do_cartão",
        "door": "código_da_porta código_do_alarme",
        "card": "cartão cartões",
        "cvv": "código_cvv",
        "check": "código_de_segurança",
        "recovery": "(?:códigos?|chaves?)_de_(?:recuperação|reserva)",
        "passport": "passaporte",
    },
    "it": {
        "login": "utente",
        "password": "parola_d'ordine parola_chiave",
        "equals": "è era sono",
        "of": "di del della dello per il la",
        "whose": "mio mia sul",
        "pin": "codice_pin",
        "door": "codice_(?:della_porta|del_cancello|dell'allarme)",
        "card": "carta(?:_di_credito)?",
        "cvv": "codice_cvv",
        "check": "codice_di_sicurezza",
        "recovery": "(?:codic[ei]|chiav[ei])_di_(?:recupero|backup|ripristino)",
        "passport": "passaporto",
        "number": "numero",
    },
    "nl": {
        "login": "gebruiker(?:snaam)?",
        "password": "wachtwoord(?:en)?",
        "equals": "is was luidt heet",
        "of": "voor van op de het",
        "whose": "mijn onze",
        "pin": "pincode pinnummer",
        "door": "(?:deur|alarm|poort)code",
        "card": "(?:bank|krediet)?kaart pas(?:je)? creditcard",
        "cvv": "kaartcode",
        "check": "beveiligingscode",
        "recovery": "herstel(?:codes?|sleutels?) back-?upcodes?",
        "passport": "paspoort(?:nummer)?",
    },
    "pl": {
        "login": "użytkownik",
        "password": "hasł(?:o|a|em)",
        "equals": "to jest brzmi było",
        "of": "do od dla na w",
        "pin": "kod_pin",
        "door": "kod_do_(?:drzwi|bramy|alarmu|domofonu)",
        "card": "kart[aye] karcie",
        "cvv": "kod_cvv",
        "check": "kod_zabezpieczający kod_bezpieczeństwa",
        "recovery": "(?:kody?|klucze?)_(?:odzyskiwania|zapasow[ey])",
        "passport": "paszport(?:u)? dow[oó]d",
        "number": "numer",
    },
    "tr": {
        "login": "kullanıcı(?:_adı)?",
        "password": "şifre(?:si|m|miz|n)? parola(?:sı|m|mız|n)?",
        "equals": "olarak",
        "of": "için",
        "pin": "kart_şifre(?:si|m|miz)? pin_kodu(?:m)? pin'im",
        "door": "kapı_(?:kodu|şifresi) alarm_kodu",
        "card": "kart(?:ın|ım|ımın)?",
        "cvv": "cvv_kodu",
        "check": "güvenlik_kodu",
        "recovery": "(?:kurtarma|yedek)_(?:kod|anahtar)(?:u|ları|ı)?",
        "passport": "pasaport(?:_no)?",
        "number": "numara(?:sı|m|mız)? no'?(?:su|m)?",
    },
    "ru": {
        "login": "логин",
        "password": "парол(?:ь|я|ем|и)",
        "equals": "это такой был",
        "of": "от для на к",
        "whose": "моей моя нашей",
        "pin": "пин пин_?код(?:а)? ПИН_?код(?:а)?",
        "door": "код_от_(?:двери|домофона|подъезда|сигнализации)",
        "card": "карт[аыеу]",
        "cvv": "cvv-код",
        "check": "код_безопасности",
        "recovery": "(?:резервн(?:ые|ый)_код(?:ы)?|код(?:ы)?_восстановления|ключ_восстановления)",
        "passport": "паспорт(?:а)?(?:_номер)?",
        "number": "номер(?:а|ом)? №",
    },
    "ar": {
        "password": "(?:ال)?كلمة_(?:ال)?(?:مرور|سر) باسوورد",
        "equals": "هي هو",
        "of": "ل",
        "pin": "(?:ال)?رقم_(?:ال)?سري رمز_pin",
        "door": "رمز_الباب",
        "card": "بطاق(?:ة|تي) البطاقة للبطاقة",
        "cvv": "رمز_التحقق",
        "check": "رمز_الأمان",
        "recovery": "رموز?_الاسترداد رموز_احتياطية",
        "passport": "جواز_السفر",
        "number": "رقم",
        "own": "الخاص_بي الخاصة_بي",
    },
    "hi": {
        "password": "पासवर्ड",
        "equals": "है था",
        "of": "का",
        "pin": "पिन",
        "door": "दरवाज़े_का_कोड",
        "card": "कार्ड",
        "cvv": "सीवीवी",
        "check": "सुरक्षा_कोड",
        "recovery": "रिकवरी_कोड",
        "passport": "पासपोर्ट(?:_नंबर)?",
        "after": "है था",
        "number": "नंबर संख्या कार्ड_नंबर",
    },
    "zh": {
        "login": "用户名 账号",
        "password": "密码 密碼 口令",
        "attached": "是 为 為",
        "pin": "(?:银行卡|取款|支付|卡)的?密码 (?:銀行卡|提款)密碼",
        "door": "门锁密码 门禁密码",
        "card": "卡号 信用卡 银行卡 储蓄卡 信用卡号码 卡號",
        "cvv": "安全码",
        "recovery": "恢复(?:代码|码|密钥) 备用(?:代码|码)",
        "passport": "护照(?:号码|号)?",
        "number": "号码? 號碼?",
    },
    "ja": {
        "login": "ユーザー名",
        "password": "パスワード パスフレーズ 合言葉",
        "weak": "パス",
        "attached": "は が",
        "pin": "暗証番号 pinコード",
        "door": "ドアの?暗証番号",
        "card": "カード",
        "cvv": "セキュリティコード",
        "recovery": "リカバリーコード 回復(?:コード|キー) バックアップコード",
        "passport": "パスポート(?:番号)? 旅券番号",
        "after": "です だ",
        "number": "番号",
    },
    "ko": {
        "login": "아이디",
        "password": "비밀번호 비번 암호 패스워드",
        "attached": "는 은 가",
        "pin": "핀_?번호 (?:카드|통장)_?비밀번호",
        "door": "현관_?(?:비밀번호|비번)",
        "card": "카드",
        "cvv": "보안코드",
        "recovery": "복구_?(?:코드|키) 백업_?코드",
        "passport": "여권_?번호",
        "after": "입니다 이에요 예요",
        "number": "번호",
    },
    "vi": {
        "login": "tên_đăng_nhập",
        "password": "mật_khẩu",
        "equals": "là",
        "of": "của cho",
        "whose": "tôi",
        "pin": "mã_pin",
        "door": "mã_(?:cửa|khóa)",
        "card": "thẻ",
        "cvv": "mã_cvv",
        "check": "mã_bảo_mật",
        "recovery": "mã_(?:khôi_phục|dự_phòng)",
        "passport": "hộ_chiếu",
        "number": "số",
        "own": "của_tôi cá_nhân",
    },
}


_CYRILLIC = re.compile("[\u0400-\u04ff]")


def folded(words: str) -> list[str]:
    """Return the words as expressions over folded lower-case text.

    Some Cyrillic letters look like a Latin one only as a capital, so words with such letters are in several cases.
    """
    spelled = []
    for word in words.split():
        spelled += [word, word.capitalize(), word.upper()] if _CYRILLIC.search(word) else [word]
    return list(dict.fromkeys(re.sub("_", "[ _-]", fold(word).lower()) for word in spelled))


def column(name: str) -> list[str]:
    """Return the words of one column of ``LANGUAGES``, each once. Longer words come first, so that they match first."""
    words = {word for language in LANGUAGES.values() for word in folded(language.get(name, ""))}
    return sorted(words, key=lambda word: (-len(word), word))


def any_of(words: str) -> str:
    """Return an expression for any of the words or expressions in ``words``, which are separated by spaces."""
    return "|".join(words.split())


WEAK = column("weak")  # followed by a sign they may announce a password, or something else

# Short words that occur inside others ("mdp", "senha"), and all non-Latin words, are matched only at the start of a
# word.
_WORDS = column("password") + [rf"{word}(?=[*_]{{0,3}}\s?[:=])" for word in WEAK]
_LATIN = [word for word in _WORDS if word.isascii() and not word.startswith(("pass", "pwd", "pswd"))]
_OTHERS = [word for word in _WORDS if not word.isascii()]


def _initials(words: list[str]) -> str:
    return "".join(sorted({word[0] for word in words if word[0].isalpha() and word[0].isascii()}))


PASSWORD = (
    any_of(
        r"""pass(?:words?|wd|wort|phrase|code|key) pwd pswd requirepass (?<![a-z])(?:psk|pw)(?![a-z])
        (?:db|user|root|admin|my|sql|smtp|mail|ftp|ssh)_?pass(?![a-z])"""
    )
    + f"|identified by|(?=[{_initials(_LATIN)}])(?<![a-z])(?:{'|'.join(_LATIN)})"
    + rf"|(?=[^\x00-\x7f]|[{_initials(_OTHERS)}])"
    + f"(?:{'|'.join(_OTHERS)})"
)
EQUALS = "|".join(column("equals"))  # in all languages; English words are distinguished where that matters
ATTACHED = "|".join(column("attached"))
OF = "|".join(column("of"))

_KEY_OF = any_of(
    """api access secret private priv encryption encrypt decryption signing sign auth account master storage
    shared service session licen[cs]e deploy deployment webhook client consumer app application admin
    root ssh rsa aes hmac jwt crypto subscription integration server write personal developer wpa wi-?fi
    security recovery vault bot ingest insert routing fernet cipher symmetric pgp gpg vapid product
    activation"""
)
_SHORT = any_of(
    """creds jwt sid phpsessid jsessionid sessionid session[_-]?id session[_-]?cookie csrf auth oauth cookie
    x-auth connection[_-]?string pat pin otp totp salt"""
)
TOKEN = (
    rf"secret|token|(?:{_KEY_OF})[ _.-]?keys?|credentials?|authorization|(?<![a-z])bearer"
    rf"|(?<![a-z])(?:{_SHORT}|session (?:id|cookie)|connection string)(?![a-z])"
)

# Issuers whose credentials have no distinctive shape, and are recognized only as a random value next to the name.
_ISSUERS = any_of(
    """adafruit adobe airtable algolia alibaba amplitude asana atlassian auth0 aws azure beamer binance
    bitbucket bitly bittrex bugsnag cloudflare cloudinary codecov cohere coinbase confluence confluent
    contentful datadog deepgram digitalocean discord droneci dropbox elastic etherscan etsy facebook
    fastly finicity finnhub firebase flickr freshbooks freshdesk gcp gitter gocardless hellosign heroku
    hubspot ibm infura intercom jfrog jira kraken kucoin launchdarkly linear linked[_-]?in loggly looker mailchimp
    mailgun mapbox mattermost meraki messagebird mistral netlify new[_-]?relic nytimes okta opsgenie
    pagerduty pastebin paypal plaid postmark private[_-]?ai pusher rapidapi replicate rollbar segment sendbird sentry
    shodan snyk softlayer sonar(?:qube)? splunk spotify squarespace sumo(?:logic)? supabase telegram
    travis(?:ci)? trello twilio twitch twitter typeform vercel virustotal wandb weatherapi yandex zendesk zoom"""
)
ISSUER = rf"(?<![a-z])(?:{_ISSUERS}|new relic)(?![a-z])"

# Suffixes with which a name is still a name for a secret: DB_PASSWORD_PROD, secret2, passwords.
_ENDINGS = any_of(
    """prod production dev devel development test testing stage staging live local main primary secondary old
    new backup master admin root user db database default current value val text plain key secret token
    password hash b64 base64 string id key[_-]?id hex seed pem env ci bot access api"""
)
SAME_NAME = rf"s?(?:[._ -]{{0,2}}(?:{_ENDINGS}|key id)){{0,2}}[._ -]{{0,2}}[0-9]{{0,4}}"
