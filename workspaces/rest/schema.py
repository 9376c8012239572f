"""Generation of the OpenAPI schema. Named in the settings, so it must not import ``rest_framework.views``."""

from __future__ import annotations

from typing import Any

from drf_spectacular.openapi import AutoSchema

from workspaces.rest.docs import Route, SessionScheme, error_response, no_keys, said_of


class Schema(AutoSchema):
    """Spectacular's, told by ``documented_under`` and docstrings. A DELETE may have a body too: what is to go."""

    def get_operation(self, path: str, path_regex: str, path_prefix: str, method: str, registry: Any) -> Any:
        self._method = getattr(self.view, method.lower())
        if not hasattr(self._method, "route"):
            return None  # the pages that show the schema
        self._route: Route = self._method.route
        return super().get_operation(path, path_regex, path_prefix, method, registry)

    def get_operation_id(self) -> str:
        return self._route.operation

    def get_tags(self) -> list[str]:
        return [self._route.tag]

    def get_summary(self) -> str:
        return said_of(self._method)[0]

    def get_description(self) -> str:  # type: ignore[override]  # spectacular's own hint is of another kind
        summary, more = said_of(self._method)
        return self._route.description(more, self.method, self.view) or f"{summary}."

    def get_override_parameters(self) -> list[Any]:
        return [*self._route.queries(self.view), *self._route.headers]

    def get_request_serializer(self) -> Any:
        return self._route.body

    def get_response_serializers(self) -> Any:
        codes = self._route.error_codes(self.method, self.path, self.view)
        return {**self._route.answers, **{code: error_response(code) for code in sorted(codes)}}

    def get_auth(self) -> list[Any]:
        return [{SessionScheme.name: []}] if no_keys(self.method, self.view) else super().get_auth()

    def _get_request_body(self, direction: Any = "request") -> Any:
        if self.method == "PATCH":
            return {**super()._get_request_body(direction), "required": True}
        if self.method != "DELETE":
            return super()._get_request_body(direction)
        self.method = "PUT"
        try:
            return super()._get_request_body(direction)
        finally:
            self.method = "DELETE"
