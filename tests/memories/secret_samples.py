"""Made-up credentials of every kind, built at run time so that no file holds anything like a real one."""

import random
import string

_ALNUM = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"
_random = random.Random(20240315)  # seeded: the same samples in every run


def rand(length: int, alphabet: str = _ALNUM) -> str:
    """A random string that always holds a lower-case letter or a hexadecimal one, and a digit."""
    body = [_random.choice(alphabet) for _ in range(length)]
    if length >= 4:
        letters = [char for char in alphabet if char.isalpha()]
        digits = [char for char in alphabet if char.isdigit()]
        body[1] = _random.choice(letters) if letters else body[1]
        body[2] = _random.choice(digits) if digits else body[2]
    return "".join(body)


def hexa(length: int) -> str:
    return rand(length, _HEX)


def upper(length: int) -> str:
    return rand(length, string.ascii_uppercase + string.digits)


def lower(length: int) -> str:
    return rand(length, string.ascii_lowercase + string.digits)


def uuid() -> str:
    return "-".join(hexa(length) for length in (8, 4, 4, 4, 12))


# The classes that the product promises to refuse in every dress.
PROMISED: dict[str, str] = {
    "openai": "sk-" + rand(48),
    "openai project": "sk-proj-" + rand(64),
    "anthropic": "sk-ant-" + "api03-" + rand(93) + "AA",
    "github personal": "ghp_" + rand(36),
    "github oauth": "gho_" + rand(36),
    "github user": "ghu_" + rand(36),
    "github server": "ghs_" + rand(36),
    "github refresh": "ghr_" + rand(36),
    "github fine-grained": "github_pat_" + rand(22) + "_" + rand(59),
    "stripe secret": "sk_live_" + rand(24),
    "stripe publishable": "pk_live_" + rand(24),
    "stripe test": "sk_test_" + rand(24),
    "stripe publishable test": "pk_test_" + rand(24),
    "stripe restricted": "rk_live_" + rand(24),
    "aws access key": "AKIA" + upper(16),
    "aws session key": "ASIA" + upper(16),
    "jwt": "eyJhbGciOiJIUzI1NiJ9." + "eyJ" + rand(40) + "." + rand(43),
    "slack bot": "xoxb-" + "123456789012-123456789012-" + rand(24),
    "slack user": "xoxp-" + "123456789012-123456789012-123456789012-" + hexa(32),
    "slack app": "xapp-1-" + upper(11) + "-1234567890123-" + hexa(64),
    "gitlab": "glpat-" + rand(20),
    "npm": "npm_" + rand(36),
    "google api": "AIza" + rand(35),
    "google client": "GOCSPX-" + rand(28),
    "google token": "ya29." + rand(60),
    "private key": "-----BEGIN " + "RSA PRIVATE KEY-----\n" + rand(64) + "\n-----END RSA PRIVATE KEY-----",
    "dsn": "postgres://bob:" + rand(12) + "@db.example.com:5432/app",
    "redis dsn": "redis://:" + rand(12) + "@cache:6379/0",
    "mongo dsn": "mongodb+srv://app:" + rand(12) + "@cluster0.mongodb.net/x",
    "url": "https://bob:" + rand(10) + "@git.example.com/repo.git",
}

# Kinds that public scanners know and that a reader can tell by their shape.
SHAPES: dict[str, str] = {
    "1password account": f"A3-{upper(6)}-{upper(11)}-{upper(5)}-{upper(5)}-{upper(5)}",
    "1password service": "ops_" + "eyJ" + rand(260),
    "adobe": "p8e-" + lower(32),
    "age": "AGE-SECRET-KEY-1" + "".join(_random.choices("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", k=58)),
    "airtable": "pat" + rand(14) + "." + hexa(64),
    "alibaba": "LTAI" + lower(20),
    "artifactory key": "AKCp" + rand(69),
    "artifactory reference": "cmVmd" + rand(59),
    "asana": "1/1204567890123456:" + hexa(32),
    "atlassian": "ATATT3xFfGF0" + rand(172) + "=" + upper(8),
    "authress": "sc_" + lower(12) + "." + lower(5) + ".acc-" + lower(14) + "." + lower(48),
    "aws bedrock": "ABSK" + rand(120),
    "azure ad": rand(3) + "8Q~" + rand(34),
    "azure devops": rand(76) + "AZDO" + rand(4),
    "bitbucket": "ATBB" + rand(32),
    "braintree": "access_token$production$" + lower(16) + "$" + hexa(32),
    "brevo": "xkeysib-" + hexa(64) + "-" + rand(16),
    "buildkite": "bkua_" + hexa(40),
    "circleci": "CCIPAT_" + rand(22) + "_" + hexa(40),
    "clickhouse": "4b1d" + rand(38),
    "clickup": "pk_12345678_" + upper(32),
    "clojars": "CLOJARS_" + lower(60),
    "cloudflare origin": "v1.0-" + hexa(24) + "-" + hexa(146),
    "contentful": "CFPAT-" + rand(43),
    "databricks": "dapi" + hexa(32),
    "digitalocean personal": "dop_v1_" + hexa(64),
    "digitalocean oauth": "doo_v1_" + hexa(64),
    "digitalocean refresh": "dor_v1_" + hexa(64),
    "discord bot": "M" + rand(23) + "." + rand(6) + "." + rand(38),
    "discord webhook": "https://discord.com/api/webhooks/123456789012345678/" + rand(68),
    "docker": "dckr_pat_" + rand(27),
    "doppler": "dp.pt." + rand(43),
    "dropbox": "sl." + rand(140),
    "duffel": "duffel_live_" + rand(43),
    "dynatrace": "dt0c01." + upper(24) + "." + upper(64),
    "easypost": "EZAK" + rand(54),
    "facebook page": "EAAM" + rand(110),
    "facebook app": "123456789012345|" + rand(27),
    "figma": "figd_" + rand(40),
    "flutterwave": "FLWSECK_TEST-" + hexa(32) + "-X",
    "flyio": "fo1_" + rand(43),
    "frameio": "fio-u-" + rand(64),
    "gitlab deploy": "gldt-" + rand(20),
    "gitlab runner": "glrt-" + rand(20),
    "gitlab trigger": "glptt-" + hexa(40),
    "gitlab registration": "GR1348941" + rand(20),
    "grafana cloud": "glc_" + rand(80),
    "grafana service": "glsa_" + rand(32) + "_" + hexa(8),
    "groq": "gsk_" + rand(52),
    "harness": "pat." + rand(22) + "." + rand(24) + "." + rand(20),
    "heroku": "HRKU-AA" + rand(58),
    "hubspot": "pat-na1-" + uuid(),
    "huggingface": "hf_" + rand(34),
    "infracost": "ico-" + rand(32),
    "intra42": "s-s4t2ud-" + hexa(64),
    "jwk": '{"kty": "EC", "crv": "P-256", "d": "' + rand(43) + '"}',
    "langsmith": "lsv2_pt_" + hexa(32) + "_" + hexa(10),
    "linear": "lin_api_" + rand(40),
    "lob": "live_" + hexa(35),
    "mailchimp": hexa(32) + "-us12",
    "mailgun": "key-" + hexa(32),
    "mapbox": "sk." + "eyJ" + rand(60) + "." + rand(22),
    "maxmind": rand(6) + "_" + rand(29) + "_mmk",
    "netlify": "nfp_" + rand(36),
    "new relic": "NRAK-" + upper(27),
    "notion": "ntn_" + "12345678901" + rand(35),
    "notion old": "secret_" + rand(43),
    "npm publish": "npm_" + lower(36),
    "nuget": "oy2" + lower(43),
    "octopus": "API-" + upper(26),
    "openrouter": "sk-or-v1-" + hexa(64),
    "openshift": "sha256~" + rand(43),
    "openssh key": "-----BEGIN " + "OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA",
    "perplexity": "pplx-" + rand(48),
    "pgp key": "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----\n\n" + rand(64),
    "plaid": "access-sandbox-" + uuid(),
    "planetscale": "pscale_tkn_" + rand(43),
    "postman": "PMAK-" + hexa(24) + "-" + hexa(34),
    "prefect": "pnu_" + rand(36),
    "pulumi": "pul-" + hexa(40),
    "putty key": "PuTTY-User-Key-File-3: ssh-ed25519",
    "pypi": "pypi-AgEIcHlwaS5vcmc" + rand(120),
    "razorpay": "rzp_live_" + rand(14),
    "readme": "rdme_" + lower(70),
    "replicate": "r8_" + rand(37),
    "rubygems": "rubygems_" + hexa(48),
    "scalingo": "tk-us-" + rand(48),
    "sendgrid": "SG." + rand(22) + "." + rand(43),
    "sentry user": "sntryu_" + hexa(64),
    "sentry org": "sntrys_eyJpYXQiO" + rand(100) + "_" + rand(43),
    "settlemint": "sm_pat_" + rand(16),
    "shippo": "shippo_live_" + hexa(40),
    "shopify admin": "shpat_" + hexa(32),
    "shopify shared": "shpss_" + hexa(32),
    "slack config": "xoxe.xoxp-1-" + upper(163),
    "slack webhook": "https://hooks.slack.com/services/T" + upper(8) + "/B" + upper(8) + "/" + rand(24),
    "sonar": "squ_" + hexa(40),
    "sourcegraph": "sgp_" + hexa(40),
    "square": "sq0atp-" + rand(22),
    "square oauth": "sq0csp-" + rand(43),
    "stripe webhook": "whsec_" + rand(32),
    "supabase": "sbp_" + hexa(40),
    "tailscale": "tskey-auth-" + rand(12) + "-" + rand(24),
    "teams webhook": f"https://acme.webhook.office.com/webhookb2/{uuid()}@{uuid()}/IncomingWebhook/{hexa(32)}/{uuid()}",
    "telegram": "123456789:AA" + rand(33),
    "terraform": rand(14) + ".atlasv1." + rand(64),
    "trello": "ATTA" + hexa(64),
    "twilio": "SK" + hexa(32),
    "typeform": "tfp_" + rand(59),
    "vault service": "hvs." + rand(95),
    "vault batch": "hvb." + rand(140),
    "vercel": "vcp_" + rand(56),
    "wakatime": "waka_" + uuid(),
    "xai": "xai-" + rand(80),
    "yandex": "AQVN" + rand(36),
    "memoryhub": "mh_" + rand(43),
}

# Kinds without a shape: the issuer's name beside a random value gives them away.
NAMED: dict[str, str] = {
    "heroku": "HEROKU_API_KEY=" + uuid(),
    "heroku in words": "my heroku api key is " + uuid(),
    "datadog": "datadog: " + hexa(40),
    "algolia": "algolia_admin = '" + hexa(32) + "'",
    "twitter": "TWITTER_API_SECRET=" + rand(50),
    "fastly": '"fastly_token": "' + rand(32) + '"',
    "aws secret": "aws_secret_access_key = " + rand(40),
    "aws secret camel": '"SecretAccessKey": "' + rand(40) + '"',
    "azure storage": "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=" + rand(86) + "==",
    "cloudflare": "cloudflare_api_key: " + hexa(37),
    "kubernetes": "kind: Secret\ndata:\n  password: " + rand(16),
    "netrc": "machine git.example.com login bob password " + rand(14),
    "okta": "okta token: 00" + rand(40),
    "mailgun": "Mailgun signing key: " + hexa(32),
    "oracle": "jdbc:oracle:thin:scott/" + rand(8) + "@//db:1521/x",
    "go mysql": "bob:" + rand(10) + "@tcp(127.0.0.1:3306)/app",
    "azure sas": "https://x.blob.core.windows.net/c?sv=2021-01-01&sig=" + rand(44),
}

# Each {} takes a credential: the dresses in which people paste them.
DRESSES: dict[str, str] = {
    "bare": "{}",
    "double quotes": '"{}"',
    "single quotes": "'{}'",
    "backticks": "`{}`",
    "sentence": "Hi, please use {} for the deployment, thanks.",
    "end of sentence": "The one I told you about is {}.",
    "brackets": "the value ({}) is live",
    "json": '{{"a": 1, "value": "{}", "b": null}}',
    "escaped json": '"{{\\"value\\": \\"{}\\"}}"',
    "environment": "export SOMETHING={}",
    "dotenv": 'SOMETHING="{}"',
    "yaml": "settings:\n  something: {}\n  other: 1",
    "header": "Authorization: Bearer {}",
    "other header": "X-Custom: {}",
    "code block": "```python\nclient = Client('{}')\n```",
    "after a line break": "here it comes:\n{}\nkeep it safe",
    "after a windows line break": "here it comes:\r\n{}\r\n",
    "after an escaped line break": "here it comes:\\n{}",
    "table": "| service | {} |",
    "html": "<code>{}</code>",
    "query": "https://api.example.com/v1?k={}&x=1",
    "list": "- prod: {}\n- dev: none",
    "comma": "a,{},b",
    "after many words": "word " * 2000 + "{}",
}
