"""What the Messages API rejects, on both its versions, with the words it uses.

Sources, read 2026-11: the API reference and error pages; which model takes what comes from the catalogue.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from ..models import Model
from .errors import WireError
from .fields import misfit

if TYPE_CHECKING:
    from .server import Call

CURRENT, OLDER = "2026-10-21", "2023-06-01"
MAX_CACHE_BLOCKS = 4
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_CLAUDE = re.compile(r"claude-[a-z0-9.-]+(@[a-z0-9]+)?")

Body = Mapping[str, Any]


def version_of(call: Call) -> str:
    """The request's API version; raises WireError 400."""
    version = call.request.headers.get("anthropic-version")
    if version is None:
        raise WireError(400, "anthropic-version: header is required")
    if version not in (CURRENT, OLDER):
        raise WireError(400, f'anthropic-version: "{version}" is not a valid version')
    return version


def model_of(call: Call, body: Body) -> Model:
    """The catalogue's entry for the request's model; raises WireError 404 for an unknown or retired one.

    Besides Claude's, the offline engine's own names `auto` and `legacy` are known here, and the server's `models`.
    """
    server = call.server
    name = body.get("model")
    if not isinstance(name, str) or not name:
        raise WireError(400, "model: Field required" if name is None else "model: Input should be a valid string")
    if name in server.models:
        return server.catalogue.find("compatible", name)
    local = server.catalogue.provider("local").by_id.get(name)
    if local is not None:
        return local
    model = server.catalogue.find("anthropic", name)
    if not model.known and (server.strict or not _CLAUDE.fullmatch(name)):
        raise WireError(404, f"model: {name}")
    if server.today is not None and model.lifecycle(server.today) == "retired":
        raise WireError(404, f"model: {name} was retired on {model.retires} and is no longer available")
    return model


def check(call: Call, body: Body, model: Model, version: str, endpoint: str = "messages") -> None:
    """Raise WireError 400 for the first thing in `body` that the API would not take."""
    check_fields(call, body, endpoint)
    if endpoint == "messages":
        _check_max_tokens(body, model)
    _check_sampling(body, model, version)
    _check_thinking(body)
    _check_effort(body, model)
    _check_tools(body)
    stops = body.get("stop_sequences")
    if stops and any(not stop.strip() for stop in stops):
        raise WireError(400, "stop_sequences: each stop sequence must contain non-whitespace")
    check_messages(body, model, version)


def check_fields(call: Call, body: Body, endpoint: str) -> None:
    """Raise WireError 400 for a top-level field that `endpoint` does not have, or that holds something else."""
    extra = ("messages_sampling",) if endpoint == "messages" else ()
    if "anthropic-beta" in call.request.headers:
        extra = (*extra, "messages_beta")
    wrong = misfit(body, endpoint, *extra)
    if wrong is None:
        return
    name, kinds = wrong
    raise WireError(400, f"{name}: Extra inputs are not permitted" if kinds is None else _should_be(name, kinds))


def _should_be(name: str, kinds: str) -> str:
    """The message for a value of another kind."""
    words = {"objects": "list", "strings": "list of strings", "object": "dictionary", "integer": "integer"}
    return f"{name}: Input should be a valid {' or '.join(words.get(kind, kind) for kind in kinds.split(' or '))}"


def _check_max_tokens(body: Body, model: Model) -> None:
    tokens = body.get("max_tokens")
    if tokens is None:
        raise WireError(400, "max_tokens: Field required")
    if tokens < 1:
        raise WireError(400, "max_tokens: Input should be greater than or equal to 1")
    if model.max_output is not None and tokens > model.max_output:
        limit = f"{model.max_output}, which is the maximum allowed number of output tokens for {model.id}"
        raise WireError(400, f"max_tokens: {tokens} > {limit}")


def _check_sampling(body: Body, model: Model, version: str) -> None:
    sent = [name for name in ("temperature", "top_p", "top_k") if body.get(name) is not None]
    if not sent:
        return
    for name in sent:
        if version == CURRENT and model.provider != "compatible":
            raise WireError(400, f"{name}: sampling parameters are not accepted on anthropic-version {CURRENT}")
        if not model.takes_sampling(version):
            raise WireError(400, f"`{name}` is not supported by this model.")
        value = body[name]
        if name != "top_k" and not 0 <= value <= 1:
            raise WireError(400, f"{name}: range: 0..1")
    if "temperature" in sent and "top_p" in sent and not model.temperature_with_top_p:
        raise WireError(400, "`temperature` and `top_p` cannot both be specified for this model. Please use only one.")
    if _thinks(body) and body.get("temperature", 1) != 1:
        raise WireError(400, "`temperature` may only be set to 1 when thinking is enabled.")
    if _thinks(body) and "top_k" in sent:
        raise WireError(400, "`top_k` must be unset when thinking is enabled.")


def _thinks(body: Body) -> bool:
    thinking: Body = body.get("thinking") or {}
    return thinking.get("type") in ("enabled", "adaptive")


def _check_thinking(body: Body) -> None:
    thinking = body.get("thinking")
    if thinking is None:
        return
    kind = thinking.get("type")
    if kind not in ("enabled", "disabled", "adaptive", "between_tools"):
        raise WireError(400, "thinking.type: Input should be 'enabled', 'disabled', 'adaptive' or 'between_tools'")
    if kind == "enabled":
        budget = thinking.get("budget_tokens")
        if not isinstance(budget, int):
            raise WireError(400, "thinking.enabled.budget_tokens: Field required")
        if budget < 1024:
            raise WireError(400, "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
        if budget >= body.get("max_tokens", budget + 1):
            raise WireError(400, "`max_tokens` must be greater than `thinking.budget_tokens`.")
    if _thinks(body) and _choice(body) in ("any", "tool"):
        raise WireError(400, "Thinking may not be enabled when tool_choice forces tool use.")


def _check_effort(body: Body, model: Model) -> None:
    config: Body = body.get("output_config") or {}
    unknown = config.keys() - {"effort", "format", "task_budget"}
    if unknown:
        raise WireError(400, f"output_config.{min(unknown)}: Extra inputs are not permitted")
    effort = config.get("effort")
    if effort is not None and not model.effort:
        raise WireError(400, "This model does not support the effort parameter.")
    if effort is not None and effort not in model.effort:
        raise WireError(400, f"output_config.effort: Input should be {', '.join(map(repr, model.effort))}")
    shape = config.get("format")
    if shape is not None and not (isinstance(shape, Mapping) and "schema" in shape):
        raise WireError(400, "output_config.format.schema: Field required")


def _choice(body: Body) -> object:
    choice: Body = body.get("tool_choice") or {}
    return choice.get("type")


def _check_tools(body: Body) -> None:
    tools: list[Body] = body.get("tools") or []
    names: set[str] = set()
    for at, tool in enumerate(tools):
        name = tool.get("name")
        if tool.get("type", "custom") != "custom":
            continue
        if not isinstance(name, str):
            raise WireError(400, f"tools.{at}.custom.name: Field required")
        if not _TOOL_NAME.fullmatch(name):
            raise WireError(400, f"tools.{at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        if not isinstance(tool.get("input_schema"), Mapping):
            raise WireError(400, f"tools.{at}.custom.input_schema: Field required")
        if name in names:
            raise WireError(400, "tools: Tool names must be unique.")
        names.add(name)
    choice = _choice(body)
    if choice in ("any", "tool") and not tools:
        raise WireError(400, "tool_choice may only be specified while providing tools.")
    if choice == "tool" and body["tool_choice"].get("name") not in names:
        raise WireError(400, f"Tool '{body['tool_choice'].get('name')}' not found in provided tools")


def check_messages(body: Body, model: Model, version: str) -> None:
    """Raise WireError 400 for messages that the API would not take."""
    messages = body.get("messages")
    if messages is None:
        raise WireError(400, "messages: Field required")
    if not messages:
        raise WireError(400, "messages: at least one message is required")
    turns = cast("list[Any]", messages)
    for at, message in enumerate(turns):
        _check_message(at, message, version, last=at == len(turns) - 1)
    if turns[0]["role"] != "user":
        raise WireError(400, 'messages: first message must use the "user" role')
    if turns[-1]["role"] == "assistant":
        if not model.prefill:
            raise WireError(
                400,
                "This model does not support assistant message prefill. The conversation must end with a user message.",
            )
        if isinstance(turns[-1]["content"], str) and turns[-1]["content"] != turns[-1]["content"].rstrip():
            raise WireError(400, "messages: final assistant content cannot end with trailing whitespace")
    _check_tool_pairs(turns)
    marks = sum(1 for block in _all_blocks(body) if block.get("cache_control"))
    if marks > MAX_CACHE_BLOCKS:
        raise WireError(
            400, f"A maximum of {MAX_CACHE_BLOCKS} blocks with cache_control may be provided. Found {marks}."
        )


def _check_message(at: int, message: Any, version: str, *, last: bool) -> None:
    role, content = message.get("role"), message.get("content")  # type: ignore[reportUnknownVariableType]
    if role == "system":
        raise WireError(
            400,
            'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
            'not "system" as an input message role.',
        )
    if role not in ("user", "assistant"):
        raise WireError(400, f"messages.{at}.role: Input should be 'user' or 'assistant'")
    if content is None:
        raise WireError(400, f"messages.{at}.content: Field required")
    if not isinstance(content, (str, list)):
        raise WireError(400, f"messages.{at}.content: Input should be a valid string or list")
    if not content and not (last and role == "assistant"):
        raise WireError(
            400,
            f"messages.{at}: all messages must have non-empty content except for the optional final assistant message",
        )
    if isinstance(content, str):
        if content and not content.strip():
            raise WireError(400, "messages: text content blocks must contain non-whitespace text")
        return
    for index, block in enumerate(cast("list[Any]", content)):
        _check_block(f"messages.{at}.content.{index}", str(role), block, version)


def _check_block(where: str, role: str, block: Any, version: str) -> None:
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):  # type: ignore[reportUnknownMemberType]
        raise WireError(400, f"{where}.type: Field required")
    typed = cast("dict[str, Any]", block)
    kind = typed["type"]
    if kind == "text":
        text = typed.get("text")
        if not isinstance(text, str):
            raise WireError(400, f"{where}.text.text: Field required")
        if not text:
            raise WireError(400, "messages: text content blocks must be non-empty")
        if not text.strip():
            raise WireError(400, "messages: text content blocks must contain non-whitespace text")
        if version == CURRENT and role == "user" and typed.get("citations"):
            raise WireError(400, f"{where}.text.citations: citations are not accepted in user text blocks")
    elif kind == "document" and role == "assistant" and version == CURRENT:
        raise WireError(400, f"{where}: `document` blocks are not accepted in assistant messages")
    elif kind == "tool_use" and role == "user":
        raise WireError(400, f"{where}: `tool_use` blocks can only be in `assistant` messages")
    elif kind == "tool_result" and role == "assistant":
        raise WireError(400, f"{where}: `tool_result` blocks can only be in `user` messages")


def _check_tool_pairs(messages: list[Any]) -> None:
    pending: set[str] = set()
    for at, message in enumerate(messages):
        blocks = cast("list[Any]", message["content"]) if isinstance(message["content"], list) else []
        results = {block.get("tool_use_id") for block in blocks if block["type"] == "tool_result"}
        strange = results - pending
        if strange:
            raise WireError(
                400,
                f"messages.{at}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: "
                f"{min(map(str, strange))}. Each `tool_result` block must have a corresponding `tool_use` block "
                "in the previous message.",
            )
        missing = pending - results
        if missing:
            raise WireError(
                400,
                f"messages.{at - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(sorted(missing))}. Each `tool_use` block must have a corresponding `tool_result` block "
                "in the next message.",
            )
        pending = {str(block.get("id")) for block in blocks if block["type"] == "tool_use"}
    if pending and messages[-1]["role"] == "user":
        raise WireError(400, "messages: `tool_use` ids were found without `tool_result` blocks")


def _all_blocks(body: Body) -> list[Body]:
    found: list[Any] = []
    for part in (body.get("system"), body.get("tools"), *(message.get("content") for message in body["messages"])):
        if isinstance(part, list):
            found.extend(cast("list[Any]", part))
    return [cast("Body", block) for block in found if isinstance(block, Mapping)]
