"""Answers in the form of OpenAI's interface, for its client libraries."""

from base64 import b64encode
from typing import Any

from ...errors import InputError
from ..calls import Call, numbers
from ..models import NotServedError


async def embeddings(call: Call) -> Any:
    """POST /v1/embeddings."""
    given = call.given
    model = call.find()
    if given["dimensions"] not in (None, model.width):
        raise InputError(f"The vectors of {model.name} have {model.width} dimensions; it gives no others.")
    vectors = await call.vectors(model, given["input"])
    if given["encoding_format"] == "base64":
        shown = [b64encode(row.astype("<f4").tobytes()).decode("ascii") for row in vectors]
    else:
        shown = numbers(vectors)
    return {"object": "list", "model": model.name,
            "data": [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(shown)],
            "usage": {"prompt_tokens": call.tokens, "total_tokens": call.tokens}}


async def models(call: Call) -> Any:
    """GET /v1/models."""
    return {"object": "list", "data": [_listed(call, name) for name in call.service.models.by_name]}


async def model(call: Call) -> Any:
    """GET /v1/models/{name}."""
    name = call.given["name"]
    if name not in call.service.models.by_name:
        raise NotServedError(f"There is no model {name[:100]!r} here; GET /v1/models lists them.")
    return _listed(call, name)


def _listed(call: Call, name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": call.service.began, "owned_by": "mini-bert"}
