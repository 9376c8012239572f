"""REST and its schema."""

from __future__ import annotations

DATA_UPLOAD_MAX_MEMORY_SIZE = 1_048_576
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["workspaces.rest.SessionAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "workspaces.rest.schema.Schema",
    "EXCEPTION_HANDLER": "workspaces.rest.exception_handler",
    "DATETIME_FORMAT": "%Y-%m-%dT%H:%M:%S.%fZ",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "MemoryHub",
    "DESCRIPTION": "Chat with a model inside workspaces that remember.",
    "VERSION": "0.1.0",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated"],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "workspaces.rest.examples.add_examples",
    ],
    "ENUM_NAME_OVERRIDES": {
        "ScopeEnum": "memories.models.Scope.values",
        "OrganisationScopeEnum": "memories.api.v1.serializers.SCOPE_WORDS",
        "KeyScopeEnum": "workspaces.models.KeyScope.values",
        "WebhookEventEnum": "workspaces.models.WebhookEvent.values",
        "DeliveryStatusEnum": "workspaces.models.DeliveryStatus.values",
        "DocumentStatusEnum": "workspaces.models.document.DocumentStatus.values",
        "ArtifactKindEnum": "workspaces.models.ArtifactKind.values",
        "RunStatusEnum": "chat.models.RunStatus.values",
        "RunModeEnum": "chat.models.RunMode.values",
        "RunEntryKindEnum": "chat.api.runs.KINDS",
        "AnswerModeEnum": "chat.api.serializers.MODES",
        "FoundTypeEnum": "memories.api.serializers.TYPES",
    },
}
