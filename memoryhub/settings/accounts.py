"""Settings of user accounts: sign-in, quotas, rate limits and mail."""

from typing import Any

from django.core.exceptions import ImproperlyConfigured

from memoryhub.environment import mail_from_url
from memoryhub.settings.process import env

AUTH_USER_MODEL = "workspaces.User"
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
SIGNUP_OPEN = env.flag("SIGNUP_OPEN", True)
SHARE_LINKS = env.flag("SHARE_LINKS", True)  # links that show a chat without sign-in
ACCOUNT_ADAPTER = "workspaces.accounts.sign_in.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_FORMS = {
    "change_password": "workspaces.views.forms.NewPasswordForm",
    "signup": "workspaces.accounts.sign_up.DomainSignupForm",
}
SOCIALACCOUNT_FORMS = {"signup": "workspaces.accounts.sign_up.ProviderSignupForm"}
SIGNUP_DOMAINS = [domain.casefold().removeprefix("@") for domain in env.words("SIGNUP_DOMAINS")]
if SIGNUP_DOMAINS and not env.optional("SMTP_URL"):
    raise ImproperlyConfigured(
        "MEMORYHUB_SIGNUP_DOMAINS needs MEMORYHUB_SMTP_URL: whose an address is is found out by mail."
    )
ACCOUNT_SIGNUP_FIELDS = ["username*", "email*" if SIGNUP_DOMAINS else "email", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "mandatory" if SIGNUP_DOMAINS else "none"
ACCOUNT_REAUTHENTICATION_REQUIRED = True  # before changing email addresses, which can reset the password
ACCOUNT_REAUTHENTICATION_TIMEOUT = 15 * 60  # seconds after which a password is required again
PASSWORD_RESET_TIMEOUT = 3 * 24 * 3600  # a link to reset a password is valid for three days
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False  # otherwise a password reset sends mail to any address
ACCOUNT_EMAIL_SUBJECT_PREFIX = ""
TWO_FACTOR = env.text("TWO_FACTOR", "optional").lower()
if TWO_FACTOR not in {"optional", "staff", "everyone"}:
    raise ImproperlyConfigured(
        f"MEMORYHUB_TWO_FACTOR is {TWO_FACTOR!r}, but must be optional, staff or everyone."
    )
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_ADAPTER = "workspaces.accounts.two_factor.MfaAdapter"
MFA_FORMS = {
    "activate_totp": "workspaces.accounts.two_factor.ActivateForm",
    "authenticate": "workspaces.accounts.two_factor.SignInForm",
    "reauthenticate": "workspaces.accounts.two_factor.ProveForm",
}
MFA_TOTP_ISSUER = "MemoryHub"
MFA_TOTP_TOLERANCE = 1  # accept the previous code too, since clocks of phones differ
MFA_ALLOW_UNVERIFIED_EMAIL = True  # addresses may stay unverified (ACCOUNT_EMAIL_VERIFICATION)
# Single sign-on by OpenID Connect. OIDC_DOMAINS, below, limits the domains of verified addresses; if empty, any.
_oidc = (env.url("OIDC_URL"), env.optional("OIDC_CLIENT_ID"), env.optional("OIDC_CLIENT_SECRET"))
_oidc_name = env.text("OIDC_NAME", "single sign-on")
if any(_oidc) and not all(_oidc):
    raise ImproperlyConfigured(
        "MEMORYHUB_OIDC_URL, MEMORYHUB_OIDC_CLIENT_ID and MEMORYHUB_OIDC_CLIENT_SECRET go together."
    )
OIDC = (
    {
        "name": _oidc_name,
        "client_id": _oidc[1],
        "secret": _oidc[2],
        "settings": {"server_url": _oidc[0], "oauth_pkce_enabled": True},
    }
    if _oidc[0]
    else None
)
# Sign-in by OAuth with public providers, each enabled by a client id and a secret.
OAUTH: dict[str, dict[str, Any]] = {}
for _name in ("GitHub", "GitLab", "Google"):
    _prefix = f"OAUTH_{_name.upper()}"
    _client = (env.optional(f"{_prefix}_CLIENT_ID"), env.optional(f"{_prefix}_CLIENT_SECRET"))
    if any(_client) and not all(_client):
        raise ImproperlyConfigured(
            f"MEMORYHUB_{_prefix}_CLIENT_ID and MEMORYHUB_{_prefix}_CLIENT_SECRET go together."
        )
    if all(_client):
        OAUTH[_name.lower()] = {
            "name": _name,
            "client_id": _client[0],
            "secret": _client[1],
            "settings": {"oauth_pkce_enabled": True},
        }
_own = {name: env.url(f"OAUTH_{name}_URL") for name in ("GITHUB", "GITLAB")}  # self-hosted servers
SOCIALACCOUNT_PROVIDERS = {name.lower(): {f"{name}_URL": url} for name, url in _own.items() if url}
# Domains whose verified addresses may sign in by OAuth. If empty, new users may sign up if SIGNUP_OPEN is set.
OAUTH_DOMAINS = [
    domain.casefold().removeprefix("@") for domain in env.words("OAUTH_DOMAINS")
] or SIGNUP_DOMAINS
OAUTH_SIGNUP = SIGNUP_OPEN or bool(OAUTH_DOMAINS)
OIDC_DOMAINS = [domain.casefold().removeprefix("@") for domain in env.words("OIDC_DOMAINS")]
# Groups of the provider, and what each grants: "staff", or a role in a workspace such as "ws_…:editor".
SSO_GROUPS_CLAIM = env.text("SSO_GROUPS_CLAIM")
SSO_GROUPS = env.lists(
    "SSO_GROUPS", r"staff|ws_[A-Za-z0-9]{24}:(owner|editor|viewer)", "staff or ws_…:editor"
)
SCIM_TOKEN = env.secret("SCIM_TOKEN", 32)  # if empty, /scim/v2 does not exist
if SSO_GROUPS_CLAIM and (not SSO_GROUPS or OIDC is None):
    raise ImproperlyConfigured(
        "MEMORYHUB_SSO_GROUPS_CLAIM needs MEMORYHUB_SSO_GROUPS and MEMORYHUB_OIDC_URL."
    )
if SSO_GROUPS and not (SSO_GROUPS_CLAIM or SCIM_TOKEN):
    raise ImproperlyConfigured(
        "MEMORYHUB_SSO_GROUPS needs MEMORYHUB_SSO_GROUPS_CLAIM, or a directory (MEMORYHUB_SCIM_TOKEN)."
    )
SOCIALACCOUNT_QUERY_EMAIL = True  # without it GitHub sends no addresses
SOCIALACCOUNT_EMAIL_AUTHENTICATION_AUTO_CONNECT = True  # for users of SingleSignOn.authenticate_by_email
PASSWORD_SIGN_IN = env.flag("PASSWORD_SIGN_IN", True)
if not PASSWORD_SIGN_IN:
    if OIDC is None and not OAUTH:
        raise ImproperlyConfigured(
            "MEMORYHUB_PASSWORD_SIGN_IN=off needs single sign-on: set MEMORYHUB_OIDC_URL or MEMORYHUB_OAUTH_…."
        )
    SIGNUP_OPEN = False  # sign-up with a password
SOCIALACCOUNT_ADAPTER = "workspaces.accounts.single_sign_on.SingleSignOn"
# allauth's rate limits: number, period, and per IP address, user or key (the submitted user name).
# Per ip: allauth counts IPv6 addresses by their /64.
ACCOUNT_RATE_LIMITS = {
    "login": "30/m/ip",
    "login_failed": "10/m/ip,100/h/ip,5/5m/key",
    "signup": "20/m/ip,100/h/ip",
    "reset_password": "10/m/ip,3/m/key",
    "reauthenticate": "10/m/user",
    "change_password": "5/m/user",
    "register_program": "10/m/ip,60/h/ip",  # OAuth client registration, without sign-in
    "oauth_token": "120/m/ip",
    "scim_token": "10/m/ip,60/h/ip",  # wrong tokens
}
# Requests per user and minute, all of which may come at once (workspaces.quotas).
THROTTLES = {
    "turns": env.integer("TURN_RATE", 60, low=1, high=1_000_000),
    "uploads": env.integer("UPLOAD_RATE", 60, low=1, high=1_000_000),
    "model tests": 10,  # each makes several requests to a model's server
    "invitations": 20,  # creating and accepting
    "invitation mails": 50,  # per day, because the address is arbitrary
    "sendings": 10,  # repeated deliveries of a webhook
}
EVENT_STREAMS = env.integer("EVENT_STREAMS", 20, low=1, high=1_000_000)  # per person and process
ANSWER_STREAMS = env.integer("ANSWER_STREAMS", 100, low=1, high=1_000_000)  # likewise, for answers under /v1
# Quotas per user (workspaces.quotas); 0 means unlimited.
QUOTAS = {
    "workspaces": env.integer("MAX_WORKSPACES_PER_PERSON", 100, low=0, high=1_000_000),
    "chats": env.integer("MAX_CHATS_PER_PERSON", 10_000, low=0, high=100_000_000),
    "memories": env.integer("MAX_MEMORIES_PER_PERSON", 100_000, low=0, high=100_000_000),
    "bytes": env.integer("MAX_BYTES_PER_PERSON", 5_000_000_000, low=0, high=10**15),
}
KEY_RATE = env.integer("KEY_RATE", 120, low=1, high=1_000_000)  # requests per minute and API key
# Without a mail server no mail is sent. Logging it instead would put links that reset passwords into the log.
_smtp_url = env.optional("SMTP_URL")  # not a setting, because it contains a password
EMAIL_BACKEND = (
    "workspaces.accounts.unsent_mail.RetryingBackend"
    if _smtp_url
    else "django.core.mail.backends.dummy.EmailBackend"
)
(EMAIL_HOST, EMAIL_PORT, EMAIL_HOST_USER, EMAIL_HOST_PASSWORD, EMAIL_USE_TLS, EMAIL_USE_SSL) = mail_from_url(
    _smtp_url or "smtp://localhost"
)
EMAIL_TIMEOUT = 10  # seconds; short because a user waits for the page
DEFAULT_FROM_EMAIL = env.text("FROM_EMAIL", "memoryhub@localhost")
