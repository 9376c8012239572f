"""Credentials with a distinctive shape, found anywhere in a text, by rules compiled into one expression."""

import base64
import binascii
import re
from functools import cache

from memories.judging.secret_filter import values
from memories.judging.secret_filter.terms import Finding, any_of, choice_of, spell_out

_RANGES = ("[A-Z", "[a-z0-9]", "[0-9]", "[0-9a-f]")
_BASIC = re.compile(r"(?<![A-Za-z0-9])[Bb](?:asic|ASIC) {1,3}[\"']?([A-Za-z0-9+/_-]{8,400}={0,2})")


def _compile(rules: tuple[tuple[str, str], ...], before: str) -> re.Pattern[str]:
    """Compile all rules into one expression. ``before``: the expression that must precede each of them.

    Rules that may begin with any letter are tried only before six consecutive letters or digits.
    """
    spelled = [variant for _, rule in rules for variant in spell_out(rule)]
    wide = [rule for rule in spelled if rule.startswith(_RANGES)]
    choice = choice_of([rule for rule in spelled if rule not in wide])
    if wide:
        choice += f"|(?=[A-Za-z0-9+/]{{6}})(?:{'|'.join(wide)})"
    return re.compile(f"{before}(?:{choice})")


_BEFORE = "(?<![A-Za-z0-9])(?=[A-Za-z0-9_])"  # the look-ahead quickly skips punctuation and white space


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], tuple[tuple[str, str], ...]], ...]:
    """Return the compiled rules with their sources, compiled on first use."""
    return (_compile(RULES, _BEFORE), RULES), (_compile(SIGNED, ""), SIGNED)


def find_shape(text: str) -> Finding | None:
    """Return the first credential in `text` (folded) that its shape alone shows."""
    for pattern, rules in _patterns():
        if match := pattern.search(text):
            kind = next(kind for kind, rule in rules if re.compile(rule).match(text, match.start()))
            return Finding(kind, match.start(), match.end())
    for match in _BASIC.finditer(text):
        if _is_user_and_password(match[1]):
            return Finding("basic_auth", match.start(1), match.end(1))
    return find_prefixed(text)


def _is_user_and_password(encoded: str) -> bool:
    """Return whether the base64 text decodes to printable "user:password"."""
    try:
        altchars = b"-_" if "-" in encoded else None
        decoded = base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars)
    except (binascii.Error, ValueError):
        return False
    return b":" in decoded and all(32 <= byte < 127 for byte in decoded)


# The shapes of credentials by issuer. Kinds and lengths follow the issuers' documentation and public scanners
# (gitleaks, detect-secrets, trufflehog).

_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_LOOSE_UUID = r"[0-9a-zA-Z]{8}-[0-9a-zA-Z]{4}-[0-9a-zA-Z]{4}-[0-9a-zA-Z]{4}-[0-9a-zA-Z]{12}"

# (kind, expression). A match never starts after a letter or digit. A rule whose body could contain its own start
# requires by a look-behind that it begins a whole token. Minimum lengths are a little below the issuer's, so that a
# truncated key is still recognized. A rule that begins with a word or listed characters costs almost nothing.
RULES: tuple[tuple[str, str], ...] = (
    ("memoryhub", r"mh_[A-Za-z0-9]{30,}"),
    ("memoryhub", r"mh[ar]_[A-Za-z0-9]{30,}"),
    # model providers
    ("anthropic", r"sk-ant-[A-Za-z0-9_-]{8,}"),
    ("openai", r"sk-(?:proj|svcacct|admin|service|None|or-v1|lf|helicone|kimi)-[A-Za-z0-9_-]{12,}"),
    ("openai", r"sk-[A-Za-z0-9]{16,}"),
    ("openai", r"sk-(?=[A-Za-z_-]{0,40}+[0-9])[A-Za-z0-9_-]{20,}"),
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
    ("rubygems", r"rubygems_[A-Za-z0-9]{40,}"),
    ("nuget", r"oy2[a-z0-9]{43}"),
    ("crates_io", r"cio[A-Za-z0-9]{32}"),
    ("clojars", r"CLOJARS_[A-Za-z0-9]{50,}"),
    ("docker", r"dckr_[po]at_[A-Za-z0-9_-]{20,}"),
    ("bitbucket", r"ATBB[A-Za-z0-9_=.-]{24,}"),
    ("bitbucket", r"BBDC-[A-Za-z0-9+/@_-]{36,}"),
    ("sourcegraph", r"s(?:gp|lk|gd)_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40,}"),
    ("sonar", r"sq(?:[apu]|co)_[A-Za-z0-9]{40,}"),
    ("circleci", r"CCI(?:PAT|PRJ)_[A-Za-z0-9]{10,}_[A-Fa-f0-9]{40}"),
    ("buildkite", r"bk(?:ua|aj|pat|ct|pt)_[a-z0-9]{40}"),
    ("postman", r"PMAK-[A-Za-z0-9-]{50,}"),
    ("readme", r"rdme_[a-z0-9]{60,}"),
    ("artifactory", r"AKCp[A-Za-z0-9]{60,}"),
    ("artifactory", r"cmVmd[A-Za-z0-9]{55,}"),
    # clouds and infrastructure
    ("aws", r"A(?:KIA|SIA|BIA|CCA|3T[A-Z0-9])[A-Z0-9]{16}(?![a-z0-9])"),
    ("aws_bedrock", r"ABSK[A-Za-z0-9+/]{80,}"),
    ("aws_bedrock", r"bedrock-api-key-[A-Za-z0-9+/=]{20,}"),
    ("aws_appsync", r"da2-[a-z0-9]{26}"),
    ("amazon_login", r"amzn1\.oa2-cs\.v1\.[a-f0-9]{32,}"),
    ("aws_mws", rf"amzn\.mws\.{_UUID}"),
    ("google_api", r"AIza[A-Za-z0-9_-]{30,}"),
    ("google_oauth", r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    ("google_oauth", r"ya29\.[A-Za-z0-9_-]{10,}"),
    ("google_oauth", r"1//0[A-Za-z0-9_-]{40,}"),
    ("google_fcm", r"AAAA[A-Za-z0-9_-]{7}:APA91b[A-Za-z0-9_-]{60,}"),
    ("azure_ad", r"(?=.{4}Q~)[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31}"),
    ("azure_devops", r"[A-Za-z0-9](?<![\w-][A-Za-z0-9])[A-Za-z0-9]{75}AZDO[A-Za-z0-9]{4}"),
    ("azure", r"[A-Za-z0-9](?<![\w-][A-Za-z0-9])[A-Za-z0-9]{51}JQQJ99[A-Za-z0-9]{26}"),
    # Microsoft's newer keys contain a signature of their service near the end
    (
        "azure",
        r"[A-Za-z0-9](?<![\w+/-].)[A-Za-z0-9+/]{32,80}"
        r"(?:\+(?:AMC|ASt|ASb|AEh|ARm|ACR)|AIoT|ACDb|AzFu|AzSe|AzCa)[A-Za-z0-9+/]{5,6}(?![A-Za-z0-9+/])",
    ),
    ("azure", r"[A-Za-z0-9](?<![\w+/-].)[A-Za-z0-9+/]{85}==(?![A-Za-z0-9+/=])"),
    ("azure_ad", r"[01]\.A[A-Za-z0-9_-]{50,600}\.(?:[0-9]\.)?Ag[A-Za-z0-9_-]{100,}"),
    ("azure_sas", r"sig=[A-Za-z0-9%+/=_-]{40,}"),
    ("alibaba", r"LTAI[A-Za-z0-9]{12,}"),
    ("tencent", r"AKID[A-Za-z0-9]{32}"),
    ("yandex", r"t1\.[A-Z0-9a-z_-]{10,200}={0,2}\.[A-Z0-9a-z_-]{80,}"),
    ("yandex", r"AQVN[A-Za-z0-9_-]{35,}"),
    ("yandex", r"YC[a-zA-Z0-9_-]{38}"),
    ("digitalocean", r"do[opr]_v1_[a-f0-9]{40,}"),
    ("heroku", r"HRKU-[A-Za-z0-9_-]{30,}"),
    ("cloudflare", r"v1\.0-[A-Za-z0-9-]{100,}"),
    ("cloudflare", r"cf(?:ut|at|k)_[A-Za-z0-9]{40,}"),
    ("vault", r"hv[sbr]\.[A-Za-z0-9_-]{24,}"),
    ("vault", r"s\.(?=[A-Za-z]{0,23}+[0-9])[A-Za-z0-9]{24}(?![A-Za-z0-9])"),
    ("terraform", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60}"),
    ("doppler", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{30,}"),
    ("supabase", r"sb(?:p_[a-z0-9]{40}|_secret_[A-Za-z0-9_-]{20,})"),
    ("planetscale", r"pscale_(?:tkn|oauth|pw)_[\w=.-]{32,}"),
    ("neon", r"napi_[a-z0-9]{50,}"),
    ("mongodb_atlas", r"mdb_sa_sk_[A-Za-z0-9_-]{30,}"),
    ("aiven", r"AVNS_[A-Za-z0-9_-]{16,}"),
    ("clickhouse", r"4b1d[A-Za-z0-9]{38}(?![A-Za-z0-9])"),
    ("databricks", r"dapi[a-f0-9]{32}"),
    ("pulumi", r"pul-[a-z0-9]{40}"),
    ("prefect", r"pn[ub]_[A-Za-z0-9]{36}"),
    ("openshift", r"sha256~[A-Za-z0-9_-]{43}"),
    ("flyio", r"f(?:o1_[\w-]{43}|m[0-9]{1,3}[ar]?_[A-Za-z0-9+/=,_-]{80,})"),
    ("netlify", r"nf[pcoub]_[A-Za-z0-9]{36,}"),
    ("render", r"rnd_[A-Za-z0-9]{28,}"),
    ("vercel", r"vc[pikrca]_[A-Za-z0-9]{24,}"),
    ("scalingo", r"tk-us-[A-Za-z0-9_-]{40,}"),
    ("tailscale", r"tskey-[a-z]{1,24}-[A-Za-z0-9_]{6,}"),
    ("infracost", r"ico-[A-Za-z0-9]{32}"),
    ("octopus", r"API-[A-Z0-9]{25,}"),
    ("harness", r"[ps]at\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}"),
    ("age", r"AGE-(?:SECRET-KEY|PLUGIN-[A-Z0-9]{1,20})-1[A-Z0-9]{20,}"),
    (
        "1password",
        r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}",
    ),
    ("1password", r"ops_eyJ[A-Za-z0-9+/]{100,}"),
    # observability
    ("grafana", r"gl(?:c_[A-Za-z0-9+/=]{32,}|sa_[A-Za-z0-9_]{38,})"),
    ("grafana", r"eyJrIjoi[A-Za-z0-9]{60,}"),
    ("sentry", r"sntr(?:yu|ya|yi)_[a-f0-9]{60,}"),
    ("sentry", r"sntrys_[A-Za-z0-9+/=_]{60,}"),
    ("new_relic", r"NR(?:AK|II|IQ|JS|RA|AA|BR|SP|MA)-[A-Za-z0-9_-]{16,}"),
    ("dynatrace", r"dt0[a-z][0-9]{2}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{60,}"),
    ("honeycomb", r"hc[abx][il]k_[A-Za-z0-9]{40,}"),
    ("posthog", r"ph[cxrs]_[A-Za-z0-9_]{40,}"),
    ("launchdarkly", rf"(?:sdk|mob|api|rh-api|pub-c|sub-c|sec-c)-{_LOOSE_UUID}"),
    ("new_relic", r"eu01xx(?:[0-9a-f]{26}FFFFNRAL|[0-9a-f]{36}-NRMA)"),
    ("new_relic", r"[0-9a-f](?<![\w-].)[0-9a-f]{31}FFFFNRAL"),
    ("new_relic", r"AA[0-9a-f]{40}-NRMA"),
    ("fullstory", r"(?:na|eu)1\.[A-Za-z0-9+/]{60,}"),
    ("pganalyze", r"pgar_[A-Za-z0-9]{24,}"),
    # messaging and mail
    ("slack", r"xox[a-z](?:\.xox[abp])?-[A-Za-z0-9%-]{8,}"),
    ("slack", r"xapp-[0-9]-[A-Za-z0-9-]{16,}"),
    ("slack_webhook", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{20,}"),
    ("teams_webhook", r"webhook\.office\.com/webhookb2/[A-Za-z0-9@-]{36,}"),
    ("zapier_webhook", r"hooks\.zapier\.com/hooks/catch/[A-Za-z0-9/]{12,}"),
    ("discord_webhook", r"discord(?:app)?\.com/api/(?:v[0-9]{1,2}/)?webhooks/[0-9]{15,}/[A-Za-z0-9_-]{40,}"),
    ("discord", r"[MNO](?<![\w-][MNO])[A-Za-z0-9_-]{22,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}"),
    ("discord", r"mfa\.[A-Za-z0-9_-]{80,}"),
    ("telegram", r"[0-9](?<![\w-][0-9])[0-9]{7,9}:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    ("sendgrid", r"SG\.[A-Za-z0-9_.=-]{36,}"),
    ("brevo", r"x(?:key|smtp)sib-[A-Za-z0-9_-]{60,}"),
    ("mailgun", r"(?:key|pubkey)-[0-9a-zA-Z]{32}"),
    ("mailgun", r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}(?![0-9a-f-])"),
    ("mailchimp", r"[0-9a-f]{32}-us[0-9]{1,2}"),
    ("resend", r"re_[A-Za-z0-9]{6,10}_[A-Za-z0-9]{20,}"),
    ("twilio", r"(?:AC|SK)(?=[A-Za-z]{0,31}+[0-9])[0-9a-zA-Z]{32}(?![0-9a-zA-Z])"),
    ("pinterest", r"pina_[A-Za-z0-9]{30,}"),
    ("webex", rf"[A-Za-z0-9](?<![\w-].)[A-Za-z0-9]{{63}}_[A-Za-z0-9]{{4}}_{_LOOSE_UUID}"),
    ("nvidia", rf"[a-z0-9](?<![\w-].)[a-z0-9]{{25}}:{_UUID}"),
    ("make_webhook", r"hook\.[a-z0-9.]{1,12}make\.com/[a-z0-9]{24,}"),
    ("tines_webhook", r"tines\.com/webhook/[a-z0-9]{32}/[a-z0-9]{32}"),
    # payments and shops
    ("stripe", r"[srp]k_(?:live|test|prod)_[A-Za-z0-9]{8,}"),
    ("stripe", r"whsec_[A-Za-z0-9+/=]{20,}"),
    ("square", r"sq0[a-z]{3}-[A-Za-z0-9_-]{20,}"),
    ("square", r"EAAA(?<![+/]EAAA)[A-Za-z0-9_-]{22,}"),
    ("facebook", r"EAA[A-Za-z0-9]{60,}"),
    ("facebook", r"[0-9](?<![\w-][0-9])[0-9]{14,15}(?:\||%(?:7[cC])?)[0-9A-Za-z_-]{27,40}"),
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
    ("stripe", r"(?:pi|seti|src|cs)_[A-Za-z0-9_]{14,80}_secret_[A-Za-z0-9]{16,}"),
    ("coinbase", rf"organizations/{_LOOSE_UUID}/apiKeys/{_LOOSE_UUID}"),
    ("gemini", r"(?:master|account)-(?=[A-Za-z]{0,19}+[0-9])[A-Za-z0-9]{20}(?![A-Za-z0-9-])"),
    ("midtrans", r"Mid-(?:server|client)-[A-Za-z0-9_-]{20,}"),
    ("ebay", r"(?:PRD|SBX)-[a-f0-9]{12}-[a-f0-9-]{20,}"),
    # work tools
    ("linear", r"lin_(?:api|oauth|wh)_[A-Za-z0-9]{32,}"),
    ("notion", r"ntn_[A-Za-z0-9]{40,}"),
    ("notion", r"secret_[A-Za-z0-9]{40,}"),
    ("figma", r"fig[a-z]{1,3}_[A-Za-z0-9_=-]{36,}"),
    ("dropbox", r"sl\.(?:u\.)?[A-Za-z0-9_-]{100,}"),
    ("atlassian", r"AT(?:ATT|CTT|STT|OAT)[A-Za-z0-9+/_=-]{16,}"),
    ("trello", r"ATTA[a-f0-9]{60,}"),
    ("airtable", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{60,}"),
    ("hubspot", rf"pat-[a-z]{{2}}[0-9]-{_LOOSE_UUID}"),
    ("asana", r"[012]/[0-9]{10,}(?:/[0-9]{10,})?:[0-9a-f]{32}"),
    ("clickup", r"pk_[0-9]{5,10}_[A-Z0-9]{32}"),
    ("typeform", r"tfp_[A-Za-z0-9_.=-]{40,}"),
    ("contentful", r"CFPAT-[A-Za-z0-9_-]{40,}"),
    ("adobe", r"p8e-[A-Za-z0-9]{32}"),
    ("frameio", r"fio-u-[A-Za-z0-9_=-]{60,}"),
    ("mapbox", r"[spt]k\.(?:eyJ[A-Za-z0-9_-]{20,200}|[A-Za-z0-9_-]{60,200})\.[A-Za-z0-9_-]{16,}"),
    ("mapbox", r"[sp]k\.(?:[A-Za-z0-9-]{32}(?![A-Za-z0-9-])|[A-Za-z0-9.-]{60,})"),
    ("airtable", r"[A-Za-z0-9](?<![\w-].)[A-Za-z0-9]{7,60}\.v1\.[A-Za-z0-9_-]{16,80}\.[a-f0-9]{32,}"),
    ("close", r"api_(?=[A-Za-z_.]{0,40}+[0-9])[A-Za-z0-9.]{40,}"),
    ("salesforce", r"00[A-Za-z0-9]{13}![A-Za-z0-9_.]{60,}"),
    ("salesforce", r"(?:3MVG9|5AEP861|5AeP861|5AEp861|5Aep861)[A-Za-z0-9._+/=]{60,}"),
    ("zoho", r"1000\.[a-f0-9]{32}\.[a-f0-9]{32}"),
    ("tableau", r"[A-Za-z0-9](?<![\w+/-].)[A-Za-z0-9+/]{21}==:[A-Za-z0-9]{32}"),
    ("voiceflow", r"VF\.(?:(?:DM|WS)\.)?[a-fA-F0-9]{24}\.[A-Za-z0-9]{16}"),
    ("adafruit", r"aio_[A-Za-z0-9]{26,}"),
    ("endor", r"endr\+[A-Za-z0-9-]{16}"),
    ("finage", r"API_KEY[0-9A-Z]{32}"),
    ("salad", r"salad_cloud_[0-9A-Za-z]{1,7}_[0-9A-Za-z]{7,}"),
    ("trufflehog", r"thog-(?:key|secret)-[0-9a-f]{16,}"),
    ("defined", r"dnkey-[a-z0-9=_-]{20,}"),
    ("maxmind", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    ("settlemint", r"sm_[aps]at_[A-Za-z0-9]{16,}"),
    ("intra42", r"[su]-s4t2(?:ud|af)-[a-f0-9]{64}"),
    (
        "authress",
        r"(?:sc|ext|scauth|authress)_[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_-][a-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,}",
    ),
    ("wakatime", rf"waka_{_UUID}"),
    ("ubidots", r"BBFF-[A-Za-z0-9]{30,}"),
    ("twitter", r"A{18}(?<![\w%-]A{18})A{0,10}[A-Za-z0-9%]{60,}"),
    # keys and tokens of open formats
    (
        "okta",
        r"00(?=[0-9a-f]{0,39}+[A-Zg-z_-])(?=[0-9A-Za-z_-]{0,39}[A-Za-z])[A-Za-z0-9_-]{40}(?![A-Za-z0-9_-])",
    ),
    ("authenticator_key", r"otpauth://[^\s]{0,300}?secret=[A-Za-z2-7]{8,}"),
    ("secret_token", r"secret-token:[A-Za-z0-9_.~%-]{16,}"),
    ("sidekiq", r"CONTRIBSYS__COM[\"']?\s{0,3}[:=]?\s{0,3}[\"']?[a-f0-9]{8}:[a-f0-9]{8}"),
    ("jwt", r"e(?:yJ|wo[gi])(?<![\w-]...)[A-Za-z0-9_-]{8,4000}={0,2}\.[A-Za-z0-9_-]{8,4000}"),
    ("jwt", r"eyJ(?:hbGciOi|0eXAiOi|raWQiOi)(?<![\w-]eyJ.{7})[A-Za-z0-9._-]{60,}"),
    ("jwt", r"ey(?<![\w-]..)[A-Za-z0-9]{17,400}\.ey[A-Za-z0-9_/-]{17,}"),
    ("jwt", r"ZXlK(?<![\w/+-]ZXlK)[A-Za-z0-9+/]{40,}"),  # a token that was encoded once more
    ("private_key", r"MII[A-Za-z0-9+/]{1,6}(?:IBAAKC|IBADANBgkqhkiG9w0BAQEF|BAgEAMB)"),
    ("private_key", r"b3BlbnNzaC1rZXktdjEA"),
    ("private_key", r"PuTTY-User-Key-File-[0-9]"),
    ("bitcoin", r"[5KL](?<![\w-][5KL])[1-9A-HJ-NP-Za-km-z]{50,51}(?![A-Za-z0-9])"),
    ("bitcoin", r"[xyztuv]prv[1-9A-HJ-NP-Za-km-z]{100,}"),
)

# Rules that begin with punctuation. In URLs a password cannot contain "/", so that one attempt never runs into the
# next "://".
SIGNED: tuple[tuple[str, str], ...] = (
    ("private_key", r"--? ?(?i:BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY)"),
    ("jwk", r"[\"'](?:d|k)[\"'] {0,3}: {0,3}[\"'][A-Za-z0-9_-]{20,}"),
    (
        "url_credentials",
        r"://[^\s/:@\"'<>`]{0,100}:(?![$<{*\[%]|x{3,}@|\.{3})[^\s/@\"'<>`]{1,200}@[A-Za-z0-9\[_.-]",
    ),
    ("url_credentials", r"://(?=[A-Za-z_~-]{0,60}+[0-9])[A-Za-z0-9_~-]{20,200}@[A-Za-z0-9]"),
    ("url_credentials", r"%3[aA]%2[fF]%2[fF][^\s%]{0,100}%3[aA](?:[^\s%@]|%(?!40|2[fF])){1,200}%40"),
)


# Keys of unlisted issuers: a short label, a separator and a long random part, as in "acme_live_9fKq…". Ids have the
# same form but are shorter, so a short random part counts only after a label that suggests a credential.

_TELLING = frozenset(
    any_of(
        """live test prod production sandbox sk pk rk ak pat key apikey api token tok tkn secret sec auth access
        oauth private priv server admin personal refresh session webhook bot deploy service"""
    ).split("|")
)
# Labels of hashes and ids that are public, and of encodings of whole texts.
_FINGERPRINTS = frozenset(
    any_of(
        """sha sha1 sha224 sha256 sha384 sha512 md5 blake2b blake3 crc32 hash digest checksum commit rev revision
        git etag cid build image img photo screenshot video file chunk bundle layer blob tree v1 base64 urn uuid
        bc1 ltc1 addr1 did"""
    ).split("|")
)
_LONG, _SHORT = 28, 16
# A whole token, not preceded by another part of one, nor by the "/" or "." of a URL or a path.
_TOKEN = re.compile(
    r"(?<![\w/.@#-])(?P<labels>[A-Za-z][A-Za-z0-9]{0,15}[_-](?:[A-Za-z0-9]{1,12}[_-]){0,3}?)"
    r"(?P<body>(?=[A-Za-z]{0,300}+[0-9])[A-Za-z0-9_-]{16,300})(?![\w/@-]|\.[a-z0-9]{2,5}(?!\w))"
)
_PUBLIC_ID = re.compile(r"[a-z]{2,5}_[A-Za-z0-9]{24}")  # MemoryHub's public ids (memoryhub.ids)
_DIGIT = re.compile("[0-9]")
_HEXADECIMAL = re.compile(r"[0-9a-f]+|[0-9A-F]+")


def find_prefixed(text: str) -> Finding | None:
    """Return the first token in `text` (folded) that consists of a label and a long random part."""
    harmless: set[str] = set()  # repeated tokens are judged once
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in harmless:
            continue
        if _is_key(token):
            return Finding("prefixed_key", match.start(), match.end())
        harmless.add(token)
    return None


def _is_key(token: str) -> bool:
    parts = token.replace("-", "_").split("_")
    long = [part for part in parts if len(part) >= _SHORT]
    if not long:
        return False
    labels = {*map(str.lower, parts)}
    enough = _LONG if labels.isdisjoint(_TELLING) else _SHORT
    if sum(map(len, long)) < enough or not labels.isdisjoint(_FINGERPRINTS):
        return False
    if "_" not in token and all(map(_HEXADECIMAL.fullmatch, long)):
        return False
    drawn = [part for part in long if _is_drawn(part)]
    if sum(map(len, drawn)) < enough or _PUBLIC_ID.fullmatch(token):
        return False
    return "_" in token or not all(map(_HEXADECIMAL.fullmatch, drawn))


def _is_drawn(part: str) -> bool:
    various = len(set(part)) > 5  # fewer different characters cannot be random
    return various and bool(_DIGIT.search(part)) and values.is_random(part, at_least=_SHORT)
