"""All settings of MemoryHub, by subject. Only this package reads environment variables.

docs/options.md lists them.
"""

from memoryhub.settings.accounts import *
from memoryhub.settings.language_models import *
from memoryhub.settings.process import *
from memoryhub.settings.process import env
from memoryhub.settings.storage import *
from memoryhub.settings.stored_content import *
from memoryhub.settings.web import *

READ_ELSEWHERE = ("ADMIN_USERNAME", "ADMIN_PASSWORD", "ADMIN_EMAIL")  # read by manage.py ensure_admin
env.refuse_unknown(*READ_ELSEWHERE)
