"""Errors of models and embedders, each with a message for people.

`str(error)` is shown on pages. `detail` is the start of the server's reply; since servers quote the request, only
`for_log` may be logged. `code` is stable for API clients and tests. `retryable` means that the same call may succeed
later without any change.

The message of a chat model's error is stored with the answer, in English, and translated when it is shown.
"""

from memoryhub.stored_messages import kept

MAX_DETAIL_CHARS = 300
EMPTY = kept("The model gave an empty answer.")
ONLY_THOUGHTS = kept("The model reached its length limit while it was still thinking.")


class _ServiceError(Exception):
    code: str = "error"
    retryable: bool = False
    sentence: str = "Something went wrong."
    about_the_text: bool = True  # whether the server's message may quote the request

    def __init__(
        self, sentence: str | None = None, *, detail: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(sentence or self.sentence)
        self.detail = detail[:MAX_DETAIL_CHARS]
        self.retry_after = retry_after  # seconds that the server asked to wait, if it did

    @property
    def for_log(self) -> str:
        """Return the error's code, and the server's message if it cannot contain a person's text."""
        return self.code if self.about_the_text or not self.detail else f"{self.code}: {self.detail}"


class ModelError(_ServiceError):
    """Any failure of a chat model."""

    code = "model_error"
    sentence = kept("The model could not answer.")


class ModelUnavailable(ModelError):
    """The server does not respond, or reports that it cannot work now (starting, overloaded, broken)."""

    code = "model_unavailable"
    retryable = True
    sentence = kept("The model cannot be reached right now.", "Try again in a moment.")


class ModelMissing(ModelUnavailable):
    """No model is configured, neither as a connection nor in the settings."""

    code = "no_model"
    retryable = False
    sentence = kept("No model is connected.", "An administrator can connect one under Models.")


class ModelTimeout(ModelError):
    code = "model_timeout"
    retryable = True
    sentence = kept("The model took too long to answer.")


class ModelRefused(ModelError):
    """The endpoint denies access: the API key is missing or wrong, or lacks permission or credit."""

    code = "model_refused"
    about_the_text = False
    sentence = kept("The model's endpoint refused the API key.")


class ModelNotFound(ModelError):
    code = "model_not_found"
    about_the_text = False
    sentence = kept("The model's endpoint does not know this model or address.")


class ModelMoved(ModelError):
    """The endpoint redirects. The redirect is not followed, because it would receive the texts and the API key."""

    code = "model_moved"
    about_the_text = False
    sentence = kept("The model's endpoint redirects to another address, which is not followed.")


class ModelAddressRefused(ModelError):
    """The endpoint's address is not permitted, for example an internal address, or a public one for a local model."""

    code = "model_address_refused"
    about_the_text = False
    sentence = kept("This connection may not reach the address that it names.")


class ModelNotLocal(ModelError):
    """The text may not leave this machine, and the model runs elsewhere. Nothing was sent."""

    code = "model_not_local"
    about_the_text = False
    sentence = kept(
        "This workspace's memories may not leave this machine, and the chosen model is elsewhere."
    )


class ModelRateLimited(ModelError):
    code = "model_rate_limited"
    about_the_text = False
    retryable = True
    sentence = kept("The model's endpoint is limiting requests.", "Try again in a moment.")


class ModelContextOverflow(ModelError):
    """Prompt and answer exceed the model's context. The caller may retry with a shorter prompt."""

    code = "model_context_overflow"
    sentence = kept("This conversation is too long for the model.")


class ModelCut(ModelError):
    """The stream ended early. The text streamed so far is valid."""

    code = "model_cut"
    retryable = True
    sentence = kept("The connection to the model broke before the answer was complete.")


class ModelBadReply(ModelError):
    """The server's reply is not a chat completion, or is empty."""

    code = "model_bad_reply"
    retryable = True
    sentence = kept("The model sent a reply that could not be understood.")


class ModelBadRequest(ModelError):
    """The server rejected the request itself, so sending the same request again fails too."""

    code = "model_bad_request"
    sentence = kept("The model's endpoint rejected the request.")
    param: str | None = None  # the parameter that the server names, if its messages may be passed on
    server_code: str | None = None  # the server's error code, if its messages may be passed on


class ContentFiltered(ModelError):
    code = "content_filtered"
    sentence = kept("The model's content filter stopped this answer.")


class EmbedderError(_ServiceError):
    """Any failure of an embedder."""

    code = "embedder_error"
    sentence = "The text could not be embedded."


class EmbedderUnavailable(EmbedderError):
    """The embedder is unreachable, not ready, too slow or rate-limited. A retry may succeed."""

    code = "embedder_unavailable"
    retryable = True
    sentence = "The embedding model cannot be reached right now."


class EmbedderRefused(EmbedderError):
    """The endpoint rejects the API key or the model, and will until the settings change."""

    code = "embedder_refused"
    about_the_text = False
    sentence = "The embedding endpoint refused the API key or does not know the model."


class EmbedderBadRequest(EmbedderError):
    """The endpoint rejected some of the texts (too long, filtered); other texts may be accepted."""

    code = "embedder_bad_request"
    sentence = "The embedding endpoint rejected the text."


class EmbedderBadReply(EmbedderError):
    """The reply is not a usable set of vectors."""

    code = "embedder_bad_reply"
    retryable = True
    sentence = "The embedding model sent a reply that could not be used."


class EmbedderNotInstalled(EmbedderError):
    code = "embedder_not_installed"
    sentence = "The built-in embedding model is not installed. `make run` installs it."


class EmbedderAltered(EmbedderError):
    code = "embedder_altered"
    about_the_text = False
    sentence = (
        "A file of the built-in embedding model is not the one that MemoryHub was released with, so it is not loaded. "
        "Run `make clean`, then `make run`: your data stays."
    )
