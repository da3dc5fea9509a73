"""Secrets and account data taken out of recorded exchanges.

    clean = Redaction(secrets=["sk-ant-…"])
    clean.headers(headers)     # only those that say something about the exchange and nothing about the account
    clean.value(body)          # strings that look like keys, fields that name an account or a person
    clean.query(query)

Headers are kept by a list, so an unknown one is dropped. Prompts and answers stay: they are what is recorded. The same
cleaning is applied before a request is compared with recorded ones, so both sides agree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

REMOVED = "REMOVED"

REQUEST_HEADERS = frozenset({"content-type", "accept", "anthropic-version", "anthropic-beta", "openai-beta"})
RESPONSE_HEADERS = frozenset(
    {"content-type", "cache-control", "retry-after", "retry-after-ms", "x-should-retry", "openai-version"}
)
SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "x-api-key", "api-key", "cookie", "set-cookie"})

# Fields that hold a secret wherever they are, and fields at the top of a body that tell the account or the person.
_SECRET_FIELDS = frozenset(
    {
        "api_key",
        "apikey",
        "x-api-key",
        "authorization",
        "authorization_token",
        "access_token",
        "refresh_token",
        "client_secret",
        "password",
        "organization_id",
        "organization_uuid",
        "account_id",
        "workspace_id",
    }
)
_TOP_FIELDS = frozenset({"user", "metadata", "safety_identifier", "prompt_cache_key", "organization", "project"})
_WRAPPERS = frozenset({"response", "message", "error", "requests", "params", "body"})
_SHORTEST = 16  # a shorter credential is a made-up one, and may be a word of the prompt
_SECRET_QUERY = re.compile(r"key|token|secret|sig|password|auth|code", re.IGNORECASE)

_PATTERNS = (
    r"\bsk-(?=[A-Za-z_-]*[0-9*])[A-Za-z0-9_*-]{12,}",  # Anthropic, OpenAI and their likes, also shown with stars
    r"(?<=Bearer )[A-Za-z0-9._~+/-]{8,}=*",
    r"(?<=Basic )[A-Za-z0-9+/]{8,}=*",
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",  # AWS
    r"\bAIza[0-9A-Za-z_-]{35}",  # Google
    r"\bgh[pousr]_[A-Za-z0-9]{30,}",  # GitHub
    r"\bgithub_pat_\w{30,}",
    r"\bxox[a-z]-[0-9A-Za-z-]{10,}",  # Slack
    r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}",  # a JSON web token
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----",
    r"\borg-[A-Za-z0-9]{16,}",  # OpenAI organizations, projects and users
    r"\bproj_[A-Za-z0-9]{16,}",
    r"\buser-[A-Za-z0-9]{20,}",
    r"\breq_[A-Za-z0-9]{16,}",  # request ids can be looked up by whoever runs the API
    r"(?<=://)[^/\s:@\"']+:[^/\s@\"']+(?=@)",  # user:password@ in an address
    r"(?<=[?&])(?:api[_-]?key|key|access_token|token|sig|signature)=[^&\s\"'#]+",
    r"(?i)(?<=organization )[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}",
)


class Redaction:
    """Takes secrets out. `secrets` are removed wherever they stand; `patterns` are further regular expressions."""

    def __init__(self, secrets: Iterable[str] = (), patterns: Iterable[str] = ()) -> None:
        self._secrets, self._patterns = tuple(secrets), tuple(patterns)
        exact = sorted((re.escape(secret) for secret in self._secrets if len(secret) >= _SHORTEST), key=len)
        # One expression each: a pattern's own flags would have to stand first in a joined one.
        self._expressions = tuple(re.compile(one) for one in (*reversed(exact), *self._patterns, *_PATTERNS))

    def with_secrets_of(self, headers: Mapping[str, str]) -> Redaction:
        """The same, which also knows the credentials in a request's headers."""
        found: list[str] = []
        for name, value in headers.items():
            if name.lower() in SECRET_HEADERS:
                found += [value, value.partition(" ")[2]]
        return Redaction((*self._secrets, *found), self._patterns) if found else self

    def headers(self, headers: Mapping[str, str], keep: frozenset[str]) -> dict[str, str]:
        """The headers whose names are in `keep`, cleaned."""
        return {name.lower(): self.text(value) for name, value in headers.items() if name.lower() in keep}

    def query(self, query: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        """A query without the values of parameters that carry keys."""
        return {
            name: [REMOVED if _SECRET_QUERY.search(name) else self.text(value) for value in values]
            for name, values in query.items()
        }

    def text(self, text: str) -> str:
        """`text` without what looks like a secret."""
        for expression in self._expressions:
            text = expression.sub(REMOVED, text)
        return text

    def value(self, value: Any, *, top: bool = True) -> Any:
        """A JSON value, cleaned; at its top also the fields that name an account or a person."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            found = cast("Mapping[str, Any]", value)
            return {key: self._field(key, item, top=top) for key, item in found.items()}
        if isinstance(value, list):
            return [self.value(item, top=top) for item in cast("list[Any]", value)]
        return value

    def event(self, text: str) -> str:
        """A server-sent event: its JSON data cleaned as a value, the rest as text."""
        return "\n".join(self._event_line(line) for line in text.split("\n"))

    def _field(self, key: str, value: Any, *, top: bool) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        if key.lower() in _SECRET_FIELDS or (top and key in _TOP_FIELDS):
            return REMOVED if isinstance(value, str) else self._emptied(value)
        return self.value(value, top=top and key in _WRAPPERS)

    def _emptied(self, value: Any) -> Any:
        """A mapping or list with every string in it removed; its shape stays valid."""
        if isinstance(value, str):
            return REMOVED
        if isinstance(value, Mapping):
            return {key: self._emptied(item) for key, item in cast("Mapping[str, Any]", value).items()}
        if isinstance(value, list):
            return [self._emptied(item) for item in cast("list[Any]", value)]
        return value

    def _event_line(self, line: str) -> str:
        if not line.startswith("data:"):
            return self.text(line)
        data = line[5:].strip()
        try:
            value: Any = json.loads(data)
        except ValueError:
            return self.text(line)
        cleaned = self.value(value)
        if cleaned == value:
            return line
        return "data: " + json.dumps(cleaned, ensure_ascii=False, separators=(",", ":"))


def matches(recorded: object, got: object) -> bool:
    """Whether `got` is what was recorded, where anything may stand in the place of what was removed."""
    if isinstance(recorded, str) and REMOVED in recorded:
        pattern = ".*".join(re.escape(part) for part in recorded.split(REMOVED))
        return isinstance(got, str) and re.fullmatch(pattern, got, re.DOTALL) is not None
    if isinstance(recorded, Mapping) and isinstance(got, Mapping):
        one, other = cast("Mapping[str, object]", recorded), cast("Mapping[str, object]", got)
        return one.keys() == other.keys() and all(matches(value, other[key]) for key, value in one.items())
    if isinstance(recorded, list) and isinstance(got, list):
        items, others = cast("list[object]", recorded), cast("list[object]", got)
        return len(items) == len(others) and all(map(matches, items, others))
    return recorded == got
