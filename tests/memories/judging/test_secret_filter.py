"""The secret filter refuses credentials in every form and lets ordinary speech pass."""

import dataclasses
import unicodedata

from memories.judging.secret_filter import Finding, find_secret
from tests.memories.secret_samples import DRESSES, NAMED, PROMISED, SHAPES, SPOKEN, hexa, lower, rand, uuid

# Names whose value next to them is a secret.
_NAMES = [
        "password", "passwd", "pwd", "db_password", "DB_PASSWORD", "Password", "passphrase", "secret",
        "SECRET_KEY", "client_secret", "clientSecret", "api_key", "apikey", "api-key", "API_KEY", "ApiKey",
        "access_token", "ACCESS_TOKEN", "auth_token", "refresh_token", "private_key",
        "aws_secret_access_key", "encryption_key", "webhook_secret", "MYSQL_ROOT_PASSWORD", "jwt_secret",
        "token", "TOKEN", "credentials",

]  # fmt: skip
_ASSIGNMENTS = {
    "spaced": "{name} = {value}",
    "tight": "{name}={value}",
    "double quoted": '{name} = "{value}"',
    "single quoted": "{name}='{value}'",
    "colon equals": "{name} := {value}",
    "export": "export {name}={value}",
    "json": '{{"user": "bob", "{name}": "{value}"}}',
    "tight json": '{{"{name}":"{value}"}}',
    "escaped json": '{{\\"{name}\\": \\"{value}\\"}}',
    "python": "settings['{name}'] = '{value}'",
    "ruby": "'{name}' => '{value}'",
    "typed": '{name}: str = "{value}"',
    "yaml": "db:\n  {name}: {value}\n  user: bob",
    "yaml quoted": '{name}: "{value}"',
    "toml": '[db]\n{name} = "{value}"\n',
    "properties": "app.{name}={value}",
    "header": "X-{name}: {value}",
    "flag": "run --{name} {value}",
    "flag with equals": "run --{name}={value} --verbose",
    "query": "https://example.com/?user=bob&{name}={value}&x=1",
    "connection string": "Server=db;User=sa;{name}={value};Timeout=3",
    "xml": "<{name}>{value}</{name}>",
    "sentence": "I will use {name} {value} for now.",
    "told": "by the way the {name} is {value} today",
    "told with colon": "the {name} is: {value}",
    "for": "{name} for the staging box: {value}",
    "bold": "**{name}**: {value}",
    "code": "the {name} is `{value}`",
    "block": "```\n{name}={value}\n```",
    "line break": "{name}:\n{value}\n",
    "table": "| {name} | {value} |",
    "after text": "Hello!\nSome lines of text.\n{name}: {value}\nBye",
}

SPEECH = [
    "the secret ingredient: cinnamon",
    "my password is on the sticky note",
    "reset password: done",
    "token: of appreciation",
    "secret: it's love",
    "The secret is to keep whisking.",
    "secret to success: patience",
    "I forgot my password again",
    "the password is weak",
    "the password is 8 characters long",
    "My password is the name of my dog",
    "password must have at least 12 characters",
    "Password: must be 8+ chars",
    "password policy: 12+ characters, changed every 90 days",
    "password manager: Bitwarden",
    "We moved to a password manager last week",
    "the wifi password is written on the fridge",
    "password for the meeting is in the invite",
    "password reset link: https://example.com/reset",
    "password (optional): leave blank",
    "Passwordless: true",
    "the password expired, so I changed my password to something longer",
    "password = os.environ['DB_PASSWORD']",
    "password = getpass.getpass()",
    "password=$DB_PASSWORD",
    "password: ${DB_PASSWORD}",
    "password: {{ db_password }}",
    "password: <your password>",
    "password: ******",
    "password: None",
    "def login(user: str, password: str) -> bool:",
    "api_key = settings.API_KEY",
    "api_key = config['api_key']",
    "api_key: your-api-key",
    "API key: see 1Password",
    "the API key is stored in Vault",
    "api_key='sk-...'",
    "token = tokenizer.next_token()",
    "token = smallest unit of text",
    "max_tokens = 4096",
    "tokens: 1500",
    "the tokenizer: BPE",
    "token_type: bearer",
    "the token expires in 3600 seconds",
    "the token is 12 USD",
    "I lost my token at gate B12",
    "a token of our friendship",
    "bearer of good news",
    "The ring bearer is my nephew Tom",
    "Basic understanding of French",
    "secretary: Ann Miller",
    "secret santa: Bob",
    "Top secret: mission",
    "The secret was 20 years old",
    "what's the secret: is it butter?",
    "Secret Service: agents everywhere",
    "the secret garden is my favourite book",
    "credentials: PhD, MBA",
    "auth: OAuth2",
    "authentication: OAuth2 with Google",
    "our auth is JWT-based",
    "the cookie: chocolate chip",
    "session id is required",
    "salt: 2 tsp",
    "pin: a small brooch",
    "my PIN is easy to guess",
    "OTP: one time password",
    "primary key: user_id",
    "The key is persistence",
    "key: C major",
    "access key: Alt+S",
    "I passed: 90%",
    "boarding pass: gate 22",
    "my passport expires in May",
    "commit 3f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1a fixed it",
    "sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "id 550e8400-e29b-41d4-a716-446655440000",
    "chat_aB3dE5gH7jK9mN1pQ3rS5tU7",
    "mem_aB3dE5gH7jK9mN1pQ3rS5tU7 and key_aB3dE5gH7jK9mN1pQ3rS5tU7 and ses_aB3dE5gH7jK9mN1pQ3rS5tU7",
    "customer cus_NffrFeUfNV2Hib, price_1MoBy5LkdIwHu7ixZhnattbh, user_2NNEqL2nrIRdJ194ndJqAHwEfxC",
    "the roadmap: https://docs.google.com/document/d/1aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5dE7fG9h/edit",
    "IMG_20240315_123456789_HDR.jpg and screenshot_3f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1a.png",
    "sha512-aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5dE7fG9haB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5dE7fG9h==",
    "commit_3f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1a",
    "my donation address is bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
    "test_that_a_very_long_name_of_a_test_number_2_is_still_words",
    "sort_key = created_at",
    "primary_key: 3f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c",
    "cache_key = f'user:{user.pk}:v2'",
    "the kind is Secret Santa, the data: see the list",
    "playlist 37i9dQZF1DXcBWIGoYBM5M, channel UC_x5XG1OV2P6uZZ5FSM9Ttw",
    "manylinux_2_17_x86_64.manylinux2014_x86_64",
    "linear: the issue tracker we like",
    "ISBN 978-3-16-148410-0",
    "call +1 (555) 123-4567 or 0049 170 1234567",
    "IBAN DE89 3704 0044 0532 0130 00",
    "order 123-4567890-1234567",
    "tracking number 1Z999AA10123456784",
    "git@github.com:foo/bar.git",
    "https://example.com:8080/a@b",
    "https://medium.com/@user/story-3f9a8b7c6d5e",
    "https://user@example.com/path",
    "postgres://localhost:5432/app",
    "postgres://$USER:$PASSWORD@localhost/app",
    "mailto:bob@example.com",
    "mail me: bob@example.com",
    "sk-folding-cube-wrapper-element",
    "task-oriented-dialog-system-design",
    "risk-management-framework-overview-of-things",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxg",
    "VGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZy4=",
    "-----BEGIN PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGk9v bob@laptop",
    "the ghp_ prefix marks GitHub tokens",
    "keys that start with AKIA belong to AWS",
    "sk_live_ is Stripe's prefix",
    "docker run -p 8080:80 -u 1000:1000 app",
    "mysql -u root -p",
    "curl -u $USER:$PASS https://example.com",
    "My seed phrase is in the safe",
    "recovery phrase: keep it offline",
    "密码 is the Chinese word for it",
    "",
    "   \n ",
]


def test_promised_kinds_are_found_in_every_dress() -> None:
    for kind in PROMISED:
        texts = {dress: form.format(PROMISED[kind]) for dress, form in DRESSES.items()}
        assert [dress for dress, text in texts.items() if not is_found_in(text)] == [], kind


def is_found_in(text: str) -> bool:
    finding = find_secret(text)
    return finding is not None and 0 <= finding.start < finding.end <= len(text)


def test_kinds_with_a_shape_are_found_in_every_dress() -> None:
    for kind in SHAPES:
        missed = [dress for dress, form in DRESSES.items() if find_secret(form.format(SHAPES[kind])) is None]
        assert missed == [], kind


def test_classes_told_by_their_words_are_found_in_every_dress() -> None:
    for kind in SPOKEN:
        missed = [dress for dress, form in DRESSES.items() if find_secret(form.format(SPOKEN[kind])) is None]
        assert missed == [], kind


def test_a_key_of_an_issuer_nobody_listed_is_told_by_its_form() -> None:
    labels = ["acme_", "acme_live_", "Acme-", "ACME_PROD_", "x1_sk_", "acme-api-key-"]
    found = [
        find_secret(label + draw(36)) for label in labels for draw in (rand, hexa, lower) for _ in range(20)
    ]
    assert (
        sum(finding is None for finding in found) <= len(found) // 12
    )  # a label with "-" and hexadecimal digits passes


def test_kinds_without_a_shape_are_found_beside_their_name() -> None:
    for kind in NAMED:
        assert find_secret(NAMED[kind]) is not None, kind
        assert find_secret(f"Look:\n```\n{NAMED[kind]}\n```") is not None, kind


def test_random_values_are_found_in_every_assignment() -> None:
    for name in _NAMES:
        texts = [
            form.format(name=name, value=value)
            for form in _ASSIGNMENTS.values()
            for value in (rand(20), rand(32), hexa(32), uuid())
        ]
        assert [text for text in texts if find_secret(text) is None] == [], name


def test_usual_ways_of_giving_away_a_password() -> None:
    texts = [
        "password = hunter2", "password=letmein", "PASSWORD=letmein", 'password: "swordfish"',
        "password: swordfish", '{"password": "letmein"}', "Password: Sommer2024!", "my password is hunter2",
        "My password is: hunter2!", "the wifi password is Tr0ub4dor&3.",
        "the password for netflix is hunter2", "set the password to hunter2",
        "login with admin password hunter2", "the password is \"swordfish\"", "password: 123456",
        "pwd=1234", "passphrase: correct horse battery staple", "DB_PASS=geheim",
        "mysql -u root -pS3cret app", "sshpass -p hunter2 ssh bob@host",
        "curl -u admin:hunter2 https://example.com", "IDENTIFIED BY 'pa55word'", "ENV DB_PASSWORD hunter2",
        "requirepass foobared1", "secret=shhh", "SECRET_KEY = 'django-insecure-abc'", "Passwort: geheim12",
        "contraseña: perro123", "пароль: qwerty123", "密码: abc12345", "senha = gato99",
        "Authorization: Basic dXNlcjpwYXNz", "authorization: bearer abcdef123456",
        "AUTHORIZATION: BEARER ABCDEF123456", '{"Authorization": "Token abcdef123456"}',
        "-H 'Authorization: abcdef1234567890'", "Proxy-Authorization: Basic dXNlcjpwYXNz",
        "Cookie: sessionid=38afes7a8d6f7a6s8d7f68", "postgres%3A%2F%2Fbob%3Apw%40localhost%2Fdb",
        "amqp://guest:guest@rabbit//", "ftp://bob:pw@host/", "password%3Dhunter2", "auth=YWRtaW46c2VjcmV0",
        "the token 'abcd1234efgh5678' works",
        "seed phrase: apple banana cherry dog eagle frog grape horse igloo jacket kite lemon",
    ]  # fmt: skip
    for text in texts:
        assert find_secret(text) is not None, text


def test_ordinary_speech_and_code_pass() -> None:
    for text in SPEECH:
        assert find_secret(text) is None, text
        assert find_secret(f"Yesterday we talked.\n{text}\nThat was all.") is None, text


_NO_DIGITS = str.maketrans("0123456789", "abcdefghij")


def _wide(text: str) -> str:
    return "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text)


def test_unicode_disguises_do_not_help() -> None:
    disguises = [
        lambda text: "\u200b".join(text),
        lambda text: "\u2060".join(text),
        lambda text: "\ufeff".join(text),
        lambda text: text.replace("a", "\u00ada").replace("A", "\u202eA").replace("p", "\u200dp"),
        lambda text: _wide(text),
        lambda text: "".join(char + "\u0336" for char in text),
        lambda text: text.replace("a", "\u0430").replace("p", "\u0440").replace("A", "\u0410"),
        lambda text: text.replace("-", "\u2011"),
        lambda text: "".join(chr(0x1D5BA + ord(char) - 97) if "a" <= char <= "z" else char for char in text),
    ]
    for disguise in disguises:
        for secret in ["ghp_" + rand(36), "password = hunter2", "AKIA" + "Q" * 16, "sk-ant-" + rand(40)]:
            text = "Élan vital — " + disguise(secret)
            finding = find_secret(text)
            assert finding is not None, (secret, disguise)
            assert 0 <= finding.start < finding.end <= len(text), (secret, disguise)


def test_positions_are_those_of_the_text_as_given() -> None:
    token = "ghp_" + rand(36)
    assert find_secret(f"see {token} ok") == Finding("github", 4, 4 + len(token))
    disguised = "\u200b".join(token)
    finding = find_secret(f"sée {disguised} ok")
    assert finding is not None
    folded = unicodedata.normalize("NFKC", f"sée {disguised} ok"[finding.start : finding.end]).replace(
        "\u200b", ""
    )
    assert folded == token


def test_a_finding_holds_no_text() -> None:
    token = "ghp_" + rand(36)
    finding = find_secret(f"my token: {token}")
    assert finding is not None
    assert set(dataclasses.asdict(finding)) == {"kind", "start", "end"}
    assert token[4:] not in repr(finding)


def test_a_key_is_found_anywhere_in_a_long_text() -> None:
    for position in [0, 1000, 99_990]:
        text = "plain words about tea. " * 5000
        assert find_secret(text) is None, position
        assert find_secret(text[:position] + " ghp_" + rand(36) + " " + text[position:]) is not None, position


def test_a_wall_of_statements_is_refused_rather_than_read() -> None:
    for unit in ["pin=", "token: {} ", "=pat-{}", "password is {} on ", "salt\n", "aws: {}key, "]:
        wall = "".join(unit.format(lower(4).replace("0", "o")) for _ in range(2_000)) * 20
        assert find_secret(wall) is not None, unit


def test_a_long_text_that_speaks_of_secrets_line_after_line_passes() -> None:
    lines = [
        "2024-03-15 10:{n:02}:{n:02} user={name} pwd=**** ok\n",
        "The password of {name} was changed in week {n}, and nobody told her about it in time.\n",
        "    password{n} = forms.CharField(\n"
        '        label=_("Password of {name}"), widget=forms.PasswordInput, required=True\n    )\n',
        "{name}{n}_token: ${{{name}_TOKEN_{n}}}\n",
    ]
    for line in lines:
        text = "".join(
            line.format(n=number % 60, name=lower(6).translate(_NO_DIGITS)) for number in range(2_000)
        )
        assert find_secret(text) is None, line


def test_a_key_behind_many_harmless_statements_is_found() -> None:
    text = "The password of Ann was changed in May, and nobody told her about it in time.\n" * 2_000
    finding = find_secret(text + "password = hunter2")
    assert finding == Finding("password", len(text) + 11, len(text) + 18)
