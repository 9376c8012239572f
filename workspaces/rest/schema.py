"""How the OpenAPI schema is made. Named in the settings, so it must not import ``rest_framework.views``."""

from __future__ import annotations

from typing import Any

from drf_spectacular.openapi import AutoSchema


class Schema(AutoSchema):
    """Spectacular's, but a DELETE may have a body too: that of several rows at once names them there."""

    def _get_request_body(self, direction: Any = "request") -> Any:
        if self.method != "DELETE":
            return super()._get_request_body(direction)
        self.method = "PUT"
        try:
            return super()._get_request_body(direction)
        finally:
            self.method = "DELETE"
