"""The words that announce a credential, as regular expressions over folded lower-case text."""

from memories.judging.secret_filter.languages import column


def any_of(words: str) -> str:
    """Return an expression for any of the words, which stand apart by blanks and may be expressions
    themselves.
    """
    return "|".join(words.split())


# Short words that stand within others ("mdp", "senha") and all of scripts other than Latin are looked for as words.
_WORDS = column("password")
_LATIN = [word for word in _WORDS if word.isascii() and not word.startswith(("pass", "pwd", "pswd"))]
_OTHERS = [word for word in _WORDS if not word.isascii()]


def _initials(words: list[str]) -> str:
    """The Latin letters with which any of the words begins."""
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
EQUALS = "|".join(column("equals"))  # of any language; English ones are told apart where that matters
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

# Issuers whose credentials have no shape of their own: only a random value beside the name gives them away.
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

# What may follow the name within a longer one and leave it a name for a secret: DB_PASSWORD_PROD, secret2,
# passwords.
_ENDINGS = any_of(
    """prod production dev devel development test testing stage staging live local main primary secondary old
    new backup master admin root user db database default current value val text plain key secret token
    password hash b64 base64 string id key[_-]?id hex seed pem env ci bot access api"""
)
SAME_NAME = rf"s?(?:[._ -]{{0,2}}(?:{_ENDINGS}|key id)){{0,2}}[._ -]{{0,2}}[0-9]{{0,4}}"
