"""The description of the server in OpenAPI 3.1, from the table of routes."""

from typing import Any

from ..version import __version__
from .fields import object_schema
from .routes import ROUTES, Route

_ERRORS = {"400": "The request is not understood.", "401": "The API key is missing or wrong.",
           "404": "There is no such model.", "408": "The body did not arrive in time.",
           "413": "The request is above a limit.", "415": "The body is not JSON.",
           "421": "The Host header names another server.",
           "429": "Too many requests are waiting; Retry-After says how long to wait.",
           "500": "The server is at fault.", "503": "The server is stopping, or holds too much.",
           "504": "The answer took too long."}
_OWN = {"type": "object", "properties": {"error": {"type": "string"}, "error_type": {"type": "string"}}}
_OPENAI = {"type": "object", "properties": {"error": {"type": "object", "properties": {
    "message": {"type": "string"}, "type": {"type": "string"}, "param": {"type": ["string", "null"]},
    "code": {"type": ["string", "null"]}}}}}


def openapi(*, keys: bool) -> dict[str, Any]:
    """`keys` says whether an API key is wanted."""
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, keys)
    paths["/metrics"] = {"get": {"operationId": "metrics", "summary": "Counters for Prometheus.", "responses": {
        "200": {"description": "Prometheus' text format.", "content": {"text/plain": {}}}}, **_security(keys)}}
    return {"openapi": "3.1.0", "info": {"title": "Mini-BERT", "version": __version__, "license": {
        "name": "Apache-2.0", "identifier": "Apache-2.0"}}, "paths": paths, "components": {
            "schemas": {"Error": _OWN, "OpenAIError": _OPENAI},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}} if keys else {}}}


def _security(keys: bool) -> dict[str, Any]:
    return {"security": [{"key": []}]} if keys else {}


def _operation(route: Route, keys: bool) -> dict[str, Any]:
    summary, _, more = route.about.partition(". ")
    error = {"application/json": {"schema": {
        "$ref": f"#/components/schemas/{'OpenAIError' if route.form == 'openai' else 'Error'}"}}}
    made: dict[str, Any] = {
        "operationId": route.answer.__name__, "summary": summary.rstrip(".") + ".",
        "responses": {"200": {"description": "The answer.", "content": {"application/json": {
            "schema": route.returns}}},
            **{status: {"description": about, "content": error} for status, about in _ERRORS.items()}},
        **_security(keys and not route.open)}
    if more:
        made["description"] = more
    if "{name}" in route.path:
        made["parameters"] = [{"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}]
    if route.fields:
        made["requestBody"] = {"required": True, "content": {"application/json": {
            "schema": object_schema(route.fields), "example": route.example}}}
    return made
