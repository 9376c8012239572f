"""Credentials that can be told by their own shape, wherever they stand.

The kinds and lengths follow what their issuers document and what public scanners (gitleaks, detect-secrets,
trufflehog) look for. All rules are compiled into one expression, grouped by first character, so that each
position of a text is looked at once however many rules there are.
"""

import base64
import binascii
import re

from memories.secret_filter.finding import Finding

_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"

# (kind, expression). Rules may start only where no letter or digit stands before them; those whose body
# could hold
# their own start say with a look-behind that they begin a whole token. A minimum length is a bit under the
# issuer's,
# so that a key cut short by a careless copy is still recognised.
_RULES: tuple[tuple[str, str], ...] = (
    ("memoryhub", r"mh_[A-Za-z0-9]{30,}"),
    # model providers
    ("anthropic", r"sk-ant-[A-Za-z0-9_-]{8,}"),
    ("openai", r"sk-(?:proj|svcacct|admin|service|None|or-v1|lf|helicone|kimi)-[A-Za-z0-9_-]{12,}"),
    ("openai", r"sk-[A-Za-z0-9]{16,}"),
    ("openai", r"sk-(?=[A-Za-z_-]{0,40}[0-9])[A-Za-z0-9_-]{20,}"),
    ("huggingface", r"hf_[A-Za-z0-9]{30,}"),
    ("huggingface", r"api_org_[A-Za-z0-9]{30,}"),
    ("replicate", r"r8_[A-Za-z0-9]{32,}"),
    ("groq", r"gsk_[A-Za-z0-9]{40,}"),
    ("xai", r"xai-[A-Za-z0-9]{60,}"),
    ("perplexity", r"pplx-[A-Za-z0-9]{40,}"),
    ("nvidia", r"nvapi-[A-Za-z0-9_-]{40,}"),
    ("langsmith", r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    ("tavily", r"tvly-[A-Za-z0-9-]{20,}"),
    ("together", r"tgp_v1_[\w-]{40,}"),
    ("pinecone", r"pcsk_[A-Za-z0-9_]{40,}"),
    ("jina", r"jina_[A-Za-z0-9_]{40,}"),
    ("runpod", r"rpa_[A-Za-z0-9]{40,}"),
    ("firecrawl", r"fc-[a-f0-9]{32}"),
    ("elevenlabs", r"sk_[a-f0-9]{48}"),
    ("apify", r"apify_api_[A-Za-z0-9]{30,}"),
    # source code and packages
    ("github", r"gh[pousr]_[A-Za-z0-9]{20,}"),
    ("github", r"github_pat_[A-Za-z0-9_]{20,}"),
    ("gitlab", r"gl(?:pat|dt|rt|rtr|ptt|ft|soat|agent|oas|ffct|imt|wt|cbt)-[A-Za-z0-9_.-]{16,}"),
    ("gitlab", r"GR1348941[A-Za-z0-9_-]{16,}"),
    ("gitlab", r"_gitlab_session=[0-9a-z]{32}"),
    ("npm", r"npm_[A-Za-z0-9]{30,}"),
    ("pypi", r"pypi-(?:AgEIcHlwaS5vcmc|AgENdGVzdC5weXBpLm9yZw|[A-Za-z0-9_-]{80})[A-Za-z0-9_-]{16,}"),
    ("rubygems", r"rubygems_[a-f0-9]{40,}"),
    ("nuget", r"oy2[a-z0-9]{43}"),
    ("crates_io", r"cio[A-Za-z0-9]{32}"),
    ("clojars", r"CLOJARS_[A-Za-z0-9]{50,}"),
    ("docker", r"dckr_[po]at_[A-Za-z0-9_-]{20,}"),
    ("bitbucket", r"ATBB[A-Za-z0-9]{24,}"),
    ("sourcegraph", r"sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}"),
    ("sonar", r"sq[apu]_[a-f0-9]{40}"),
    ("circleci", r"CCI(?:PAT|PRJ)_[A-Za-z0-9]{10,}_[a-f0-9]{40}"),
    ("buildkite", r"bk(?:ua|aj|pat)_[a-f0-9]{40}"),
    ("postman", r"PMAK-[A-Za-z0-9]{24}-[A-Za-z0-9]{30,}"),
    ("readme", r"rdme_[a-z0-9]{60,}"),
    ("artifactory", r"AKCp[A-Za-z0-9]{60,}"),
    ("artifactory", r"cmVmd[A-Za-z0-9]{55,}"),
    # clouds and infrastructure
    ("aws", r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}(?![a-z0-9])"),
    ("aws_bedrock", r"ABSK[A-Za-z0-9+/]{80,}"),
    ("aws_bedrock", r"bedrock-api-key-[A-Za-z0-9+/=]{20,}"),
    ("aws_mws", rf"amzn\.mws\.{_UUID}"),
    ("google_api", r"AIza[A-Za-z0-9_-]{30,}"),
    ("google_oauth", r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    ("google_oauth", r"ya29\.[A-Za-z0-9_-]{20,}"),
    ("google_oauth", r"1//0[A-Za-z0-9_-]{40,}"),
    ("google_fcm", r"AAAA[A-Za-z0-9_-]{7}:APA91b[A-Za-z0-9_-]{60,}"),
    ("azure_ad", r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31}"),
    ("azure_devops", r"[A-Za-z0-9](?<![\w-][A-Za-z0-9])[A-Za-z0-9]{75}AZDO[A-Za-z0-9]{4}"),
    ("azure", r"[A-Za-z0-9](?<![\w-][A-Za-z0-9])[A-Za-z0-9]{51}JQQJ99[A-Za-z0-9]{26}"),
    ("azure_sas", r"sig=[A-Za-z0-9%+/=_-]{40,}"),
    ("alibaba", r"LTAI[A-Za-z0-9]{12,}"),
    ("tencent", r"AKID[A-Za-z0-9]{32}"),
    ("yandex", r"t1\.[A-Z0-9a-z_-]{10,200}={0,2}\.[A-Z0-9a-z_-]{80,}"),
    ("yandex", r"AQVN[A-Za-z0-9_-]{35,}"),
    ("yandex", r"YC[a-zA-Z0-9_-]{38}"),
    ("digitalocean", r"do[opr]_v1_[a-f0-9]{40,}"),
    ("heroku", r"HRKU-[A-Za-z0-9_-]{30,}"),
    ("cloudflare", r"v1\.0-[a-f0-9]{24}-[a-f0-9]{100,}"),
    ("cloudflare", r"cf(?:ut|at|k)_[A-Za-z0-9]{40,}"),
    ("vault", r"hv[sbr]\.[A-Za-z0-9_-]{24,}"),
    ("vault", r"s\.(?=[A-Za-z]{0,23}[0-9])[A-Za-z0-9]{24}(?![A-Za-z0-9])"),
    ("terraform", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60}"),
    ("doppler", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{30,}"),
    ("supabase", r"(?:sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_-]{20,})"),
    ("planetscale", r"pscale_(?:tkn|oauth|pw)_[\w=.-]{32,}"),
    ("neon", r"napi_[a-z0-9]{50,}"),
    ("mongodb_atlas", r"mdb_sa_sk_[A-Za-z0-9_-]{30,}"),
    ("aiven", r"AVNS_[A-Za-z0-9_-]{16,}"),
    ("clickhouse", r"4b1d[A-Za-z0-9]{38}(?![A-Za-z0-9])"),
    ("databricks", r"dapi[a-f0-9]{32}"),
    ("pulumi", r"pul-[a-f0-9]{40}"),
    ("prefect", r"pn[ub]_[A-Za-z0-9]{36}"),
    ("openshift", r"sha256~[A-Za-z0-9_-]{43}"),
    ("flyio", r"(?:fo1_[\w-]{43}|fm[12][ar]?_[A-Za-z0-9+/]{80,})"),
    ("netlify", r"nf[pcoub]_[A-Za-z0-9]{36,}"),
    ("render", r"rnd_[A-Za-z0-9]{28,}"),
    ("vercel", r"vc[pikrca]_[A-Za-z0-9]{24,}"),
    ("scalingo", r"tk-us-[A-Za-z0-9_-]{40,}"),
    ("tailscale", r"tskey-[a-z]{3,10}-[A-Za-z0-9]{8,}(?:-[A-Za-z0-9]{8,})?"),
    ("infracost", r"ico-[A-Za-z0-9]{32}"),
    ("octopus", r"API-[A-Z0-9]{25,}"),
    ("harness", r"(?:pat|sat)\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}"),
    ("age", r"AGE-(?:SECRET-KEY|PLUGIN-[A-Z0-9]{1,20})-1[A-Z0-9]{20,}"),
    (
        "1password",
        r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}",
    ),
    ("1password", r"ops_eyJ[A-Za-z0-9+/]{100,}"),
    # observability
    ("grafana", r"gl(?:c_[A-Za-z0-9+/]{32,}|sa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8})"),
    ("grafana", r"eyJrIjoi[A-Za-z0-9]{60,}"),
    ("sentry", r"sntr(?:yu|ya|yi)_[a-f0-9]{60,}"),
    ("sentry", r"sntrys_[A-Za-z0-9+/=_]{60,}"),
    ("new_relic", r"NR(?:AK|II|IQ|JS|RA|AA)-[A-Za-z0-9_-]{16,}"),
    ("dynatrace", r"dt0[a-z][0-9]{2}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{60,}"),
    ("honeycomb", r"hc[abx][il]k_[A-Za-z0-9]{40,}"),
    ("posthog", r"ph[cx]_[A-Za-z0-9]{40,}"),
    ("launchdarkly", rf"(?:sdk|mob|api)-{_UUID}"),
    # messaging and mail
    ("slack", r"xox[abceoprs](?:\.xox[abp])?-[A-Za-z0-9-]{10,}"),
    ("slack", r"xapp-[0-9]-[A-Za-z0-9-]{16,}"),
    ("slack_webhook", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{20,}"),
    ("teams_webhook", r"webhook\.office\.com/webhookb2/[A-Za-z0-9@-]{36,}"),
    ("zapier_webhook", r"hooks\.zapier\.com/hooks/catch/[0-9]{3,}/[A-Za-z0-9]{4,}"),
    ("discord_webhook", r"discord(?:app)?\.com/api/(?:v[0-9]{1,2}/)?webhooks/[0-9]{15,}/[A-Za-z0-9_-]{40,}"),
    ("discord", r"[MNO](?<![\w-][MNO])[A-Za-z0-9_-]{22,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}"),
    ("discord", r"mfa\.[A-Za-z0-9_-]{80,}"),
    ("telegram", r"[0-9](?<![\w-][0-9])[0-9]{7,9}:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    ("sendgrid", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("brevo", r"x(?:key|smtp)sib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    ("mailgun", r"key-[0-9a-zA-Z]{32}"),
    ("mailgun", r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}(?![0-9a-f-])"),
    ("mailchimp", r"[0-9a-f]{32}-us[0-9]{1,2}"),
    ("resend", r"re_[A-Za-z0-9]{6,10}_[A-Za-z0-9]{20,}"),
    ("twilio", r"(?:AC|SK)[0-9a-f]{32}(?![0-9a-zA-Z])"),
    # payments and shops
    ("stripe", r"[srp]k_(?:live|test|prod)_[A-Za-z0-9]{8,}"),
    ("stripe", r"whsec_[A-Za-z0-9+/=]{20,}"),
    ("square", r"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{20,}"),
    ("square", r"EAAA[A-Za-z0-9_-]{50,}"),
    ("facebook", r"EAA[A-Za-z0-9]{60,}"),
    ("facebook", r"[0-9](?<![\w-][0-9])[0-9]{14,15}\|[0-9A-Za-z_-]{27,40}"),
    ("shopify", r"shp(?:at|ca|pa|ss|tka|ua)_[A-Fa-f0-9]{24,}"),
    ("braintree", r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}"),
    ("razorpay", r"rzp_(?:live|test)_[A-Za-z0-9]{14,}"),
    ("flutterwave", r"FLW(?:SECK|PUBK)(?:_TEST)?-[A-Za-z0-9]{12,}"),
    ("xendit", r"xnd_(?:production|development)_[A-Za-z0-9]{30,}"),
    ("plaid", rf"access-(?:sandbox|development|production)-{_UUID}"),
    ("easypost", r"EZ[AT]K[A-Za-z0-9]{50,}"),
    ("shippo", r"shippo_(?:live|test)_[A-Fa-f0-9]{32,}"),
    ("lob", r"(?:live|test)_(?:[a-f0-9]{35}|pub_[a-f0-9]{31})(?![a-f0-9])"),
    ("duffel", r"duffel_(?:test|live)_[A-Za-z0-9_=-]{40,}"),
    # work tools
    ("linear", r"lin_(?:api|oauth|wh)_[A-Za-z0-9]{32,}"),
    ("notion", r"ntn_[A-Za-z0-9]{40,}"),
    ("notion", r"secret_[A-Za-z0-9]{40,}"),
    ("figma", r"fig[dourh]+_[A-Za-z0-9_-]{36,}"),
    ("dropbox", r"sl\.(?:u\.)?[A-Za-z0-9_-]{100,}"),
    ("atlassian", r"AT(?:ATT|CTT|STT|OAT)[A-Za-z0-9_=-]{24,}"),
    ("trello", r"ATTA[a-f0-9]{60,}"),
    ("airtable", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{60,}"),
    ("hubspot", rf"pat-[a-z]{{2}}[0-9]-{_UUID}"),
    ("asana", r"[0-2]/[0-9]{10,}(?:/[0-9]{10,})?:[0-9a-f]{32}"),
    ("clickup", r"pk_[0-9]{5,10}_[A-Z0-9]{32}"),
    ("typeform", r"tfp_[A-Za-z0-9_.=-]{40,}"),
    ("contentful", r"CFPAT-[A-Za-z0-9_-]{40,}"),
    ("adobe", r"p8e-[A-Za-z0-9]{32}"),
    ("frameio", r"fio-u-[A-Za-z0-9_=-]{60,}"),
    ("mapbox", r"[spt]k\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{16,}"),
    ("maxmind", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    ("settlemint", r"sm_[aps]at_[A-Za-z0-9]{16,}"),
    ("intra42", r"s-s4t2(?:ud|af)-[a-f0-9]{64}"),
    (
        "authress",
        r"(?:sc|ext|scauth|authress)_[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_-][a-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,}",
    ),
    ("wakatime", rf"waka_{_UUID}"),
    ("ubidots", r"BBFF-[A-Za-z0-9]{30,}"),
    ("twitter", r"A{18}(?<![\w%-]A{18})A{0,10}[A-Za-z0-9%]{60,}"),
    # keys and tokens of open formats
    ("jwt", r"eyJ(?<![\w-]eyJ)[A-Za-z0-9_-]{8,4000}={0,2}\.[A-Za-z0-9_-]{8,4000}"),
    ("private_key", r"MII[A-Za-z0-9+/]{1,6}(?:IBAAKC|IBADANBgkqhkiG9w0BAQEF|BAgEAMB)"),
    ("private_key", r"b3BlbnNzaC1rZXktdjEA"),
    ("private_key", r"PuTTY-User-Key-File-[0-9]"),
    ("bitcoin", r"[5KL](?<![\w-][5KL])[1-9A-HJ-NP-Za-km-z]{50,51}(?![A-Za-z0-9])"),
    ("bitcoin", r"[xyztuv]prv[1-9A-HJ-NP-Za-km-z]{100,}"),
)

# Rules that begin with a sign. In the addresses "/" cannot stand in a password, so that one attempt never runs into
# the next "://".
_SIGNED: tuple[tuple[str, str], ...] = (
    ("private_key", r"--? ?(?i:BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY)"),
    ("jwk", r"[\"'](?:d|k)[\"'] {0,3}: {0,3}[\"'][A-Za-z0-9_-]{20,}"),
    (
        "url_credentials",
        r"://[^\s/:@\"'<>`]{0,100}:(?![$<{*\[%]|x{3,}@|\.{3})[^\s/@\"'<>`]{1,200}@[A-Za-z0-9\[_.-]",
    ),
    ("url_credentials", r"://(?=[A-Za-z_~-]{0,60}[0-9])[A-Za-z0-9_~-]{20,200}@[A-Za-z0-9]"),
    ("url_credentials", r"%3[aA]%2[fF]%2[fF][^\s%]{0,100}%3[aA](?:[^\s%@]|%(?!40|2[fF])){1,200}%40"),
)

_BASIC = re.compile(r"(?<![A-Za-z0-9])[Bb](?:asic|ASIC) {1,3}[\"']?([A-Za-z0-9+/_-]{8,400}={0,2})")


def _compile(rules: tuple[tuple[str, str], ...], before: str) -> re.Pattern[str]:
    """One expression for all rules. Rules that begin with the same character form one branch: the parser
    takes the shared character out in front, so most branches are left after a single comparison.
    """
    branches: dict[str, list[str]] = {}
    for number, (_, rule) in enumerate(rules):
        first = rule[0] if rule[0].isalnum() else str(number)
        branches.setdefault(first, []).append(rule)
    return re.compile(
        before + "(?:" + "|".join(f"(?:{'|'.join(group)})" for group in branches.values()) + ")"
    )


_BEFORE = "(?<![A-Za-z0-9])(?=[A-Za-z0-9_])"  # the look-ahead passes over signs and blanks at little cost
_SHAPE = _compile(_RULES, _BEFORE)
_SIGN = _compile(_SIGNED, "")


def find_shape(text: str) -> Finding | None:
    """Return the first credential in `text` (folded) that its own shape gives away."""
    for pattern, rules in ((_SHAPE, _RULES), (_SIGN, _SIGNED)):
        if match := pattern.search(text):
            kind = next(kind for kind, rule in rules if re.compile(rule).match(text, match.start()))
            return Finding(kind, match.start(), match.end())
    for match in _BASIC.finditer(text):
        if _is_user_and_password(match[1]):
            return Finding("basic_auth", match.start(1), match.end(1))
    return None


def _is_user_and_password(encoded: str) -> bool:
    """True when base64 text decodes to printable "user:password"."""
    try:
        decoded = base64.b64decode(
            encoded + "=" * (-len(encoded) % 4), altchars=b"-_" if "-" in encoded else None
        )
    except (binascii.Error, ValueError):
        return False
    return b":" in decoded and all(32 <= byte < 127 for byte in decoded)
