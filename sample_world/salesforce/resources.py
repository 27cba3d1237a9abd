"""The resources below `/services/data/vNN.0`, each answered from the org."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime

from sample_world.salesforce.articles import Record
from sample_world.salesforce.categories import show_groups, strip_children
from sample_world.salesforce.describe import describe, list_objects, summarize
from sample_world.salesforce.errors import ApiError
from sample_world.salesforce.evaluation import Binding, Scope, project
from sample_world.salesforce.faults import ERRORS
from sample_world.salesforce.ids import is_id, to_long
from sample_world.salesforce.org import WORLD_TIME, Org
from sample_world.salesforce.queries import LARGEST_PAGE, SMALLEST_PAGE, Queries
from sample_world.salesforce.schema import LANGUAGES, ObjectType
from sample_world.salesforce.searches import Searches, parse_parameters, read_url_parameters

_BATCH_SIZE = re.compile(r"batchSize\s*=\s*(\d+)", re.IGNORECASE)
_FIRST_PARAMETERIZED = 36
_FIRST_CATEGORIES = 38


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a resource: `version` as `68.0`, `rest` the path below it, `options` the decoded query."""

    method: str
    version: str
    rest: tuple[str, ...]
    options: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] | None = None
    body: bytes = b""

    def get_option(self, name: str) -> str | None:
        """Return the first value of an option of the query, or `None`."""
        return next((value for key, value in self.options if key == name), None)

    def get_header(self, name: str) -> str | None:
        """Return a header by its name in lower case, or `None`."""
        return (self.headers or {}).get(name)


@dataclass(frozen=True, slots=True)
class Answer:
    """A JSON value, with a status and headers; `None` stands for no body."""

    value: object
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


class Resources:
    """Every resource of one org."""

    def __init__(self, org: Org) -> None:
        self._org = org
        self._queries = Queries(org)
        self._searches = Searches(org)

    def answer(self, call: Call) -> Answer:
        """Return what the service answers.

        Raises:
            ApiError: it refuses.
        """
        methods, handle = self._find(call)
        if call.method not in methods:
            allowed = ",".join(methods)
            text = f"HTTP Method '{call.method}' not allowed. Allowed are {allowed}"
            raise ApiError(405, "METHOD_NOT_ALLOWED", text)
        return handle(call)

    def _find(self, call: Call) -> tuple[tuple[str, ...], Callable[[Call], Answer]]:
        get, get_or_post = ("GET", "HEAD"), ("GET", "HEAD", "POST")
        match call.rest:
            case ():
                return get, self._list_resources
            case ("limits",):
                return get, self._get_limits
            case ("query",):
                return get, self._query
            case ("query", _):
                return get, self._query_more
            case ("search",):
                return get, self._search
            case ("parameterizedSearch",):
                return get_or_post, self._search_by_parameters
            case ("knowledgeManagement", "settings"):
                return get, self._get_settings
            case ("support", "dataCategoryGroups"):
                return get, self._list_category_groups
            case ("sobjects", *_):
                return get, self._find_object_resource(call)
            case _:
                raise ERRORS["not_found"]

    def _find_object_resource(self, call: Call) -> Callable[[Call], Answer]:
        match call.rest[1:]:
            case ():
                return self._list_objects
            case (_,):
                return self._summarize
            case (_, "describe"):
                return self._describe
            case (_, _):
                return self._get_record
            case _:
                raise ERRORS["not_found"]

    def _list_resources(self, call: Call) -> Answer:
        names = ("sobjects", "query", "search", "parameterizedSearch", "limits", "knowledgeManagement")
        return Answer({name: f"/services/data/v{call.version}/{name}" for name in names})

    def _get_limits(self, _call: Call) -> Answer:
        usage = self._org.usage
        remaining = max(0, usage.limit - usage.used)
        return Answer(
            {
                "ConcurrentAsyncGetReportInstances": {"Max": 200, "Remaining": 200},
                "DailyApiRequests": {"Max": usage.limit, "Remaining": remaining},
                "DailyBulkApiBatches": {"Max": 15_000, "Remaining": 15_000},
                "DataStorageMB": {"Max": 5, "Remaining": 4},
            }
        )

    def _get_settings(self, _call: Call) -> Answer:
        enabled = self._org.knowledge_enabled
        known = self._org.languages
        names = dict.fromkeys((*LANGUAGES, *known.active))
        languages = [{"active": name in known.active, "name": name} for name in names] if enabled else []
        default = known.default if enabled else None
        return Answer({"defaultLanguage": default, "knowledgeEnabled": enabled, "languages": languages})

    def _list_category_groups(self, call: Call) -> Answer:
        if float(call.version) < _FIRST_CATEGORIES or not self._org.user.knowledge_user:
            raise ERRORS["not_found"]
        if call.get_option("sObjectName") != "KnowledgeArticleVersion":
            raise ApiError(400, "INVALID_FIELD", "sObjectName must be KnowledgeArticleVersion")
        groups = show_groups()
        if call.get_option("topCategoriesOnly") != "false":
            groups = strip_children(groups)
        return Answer(groups)

    def _query(self, call: Call) -> Answer:
        statement = call.get_option("q")
        if not statement:
            raise ApiError(400, "MALFORMED_QUERY", "A query string has to be specified")
        return Answer(self._queries.run(statement, call.version, self._page_size(call)))

    def _query_more(self, call: Call) -> Answer:
        return Answer(self._queries.more(call.rest[1], call.version, self._page_size(call)))

    def _page_size(self, call: Call) -> int:
        match = _BATCH_SIZE.search(call.get_header("sforce-query-options") or "")
        wanted = int(match[1]) if match else LARGEST_PAGE
        return min(self._org.page_size, max(SMALLEST_PAGE, min(wanted, LARGEST_PAGE)))

    def _search(self, call: Call) -> Answer:
        statement = call.get_option("q")
        if not statement:
            raise ApiError(400, "MALFORMED_SEARCH", "A search string has to be specified")
        return Answer(self._searches.run_sosl(statement, call.version))

    def _search_by_parameters(self, call: Call) -> Answer:
        if float(call.version) < _FIRST_PARAMETERIZED:
            raise ERRORS["not_found"]
        body = _decode(call) if call.method == "POST" else read_url_parameters(call.options)
        return Answer(self._searches.run_parameters(parse_parameters(body), call.version))

    def _list_objects(self, call: Call) -> Answer:
        return Answer(list_objects(self._org.get_objects(float(call.version)).values(), call.version))

    def _summarize(self, call: Call) -> Answer:
        object = self._get_object(call)
        return Answer({"objectDescribe": summarize(object, call.version), "recentItems": []})

    def _describe(self, call: Call) -> Answer:
        described = describe(self._get_object(call), call.version)
        tag = f'"{hashlib.sha256(json.dumps(described).encode()).hexdigest()[:24]}"'
        headers = (("ETag", tag), ("Last-Modified", format_datetime(self._org.changed, usegmt=True)))
        if _is_known(call, tag, self._org.changed):
            return Answer(None, 304, headers)
        return Answer(described, headers=headers)

    def _get_object(self, call: Call) -> ObjectType:
        name = call.rest[1].lower()
        for object in self._org.get_objects(float(call.version)).values():
            if object.name.lower() == name:
                return object
        raise ERRORS["not_found"]

    def _get_record(self, call: Call) -> Answer:
        object, id = self._get_object(call), call.rest[2]
        scope = Scope(object, self._org.get_objects(float(call.version)), WORLD_TIME)
        _check_id(object, id)
        long = to_long(id)
        record = next((record for record in self._org.get_records(object) if record["Id"] == long), None)
        if record is None:
            raise ERRORS["not_found"]
        bindings = _choose_fields(object, call.get_option("fields"))
        return Answer(project(scope, [(None, binding) for binding in bindings], record, call.version))


def _decode(call: Call) -> object:
    if not (call.get_header("content-type") or "").startswith("application/json"):
        text = "Content-Type header specified in HTTP request is not supported"
        raise ApiError(415, "UNSUPPORTED_MEDIA_TYPE", text)
    try:
        return json.loads(call.body)
    except ValueError as error:
        raise ApiError(400, "JSON_PARSER_ERROR", f"Unexpected character: {error}") from error


def _is_known(call: Call, tag: str, changed: datetime) -> bool:
    tags = call.get_header("if-none-match")
    if tags is not None:
        return tag in [part.strip() for part in tags.split(",")]
    try:
        since = parsedate_to_datetime(call.get_header("if-modified-since") or "")
    except ValueError:
        return False
    return (since if since.tzinfo else since.replace(tzinfo=UTC)) >= changed


def _check_id(object: ObjectType, id: str) -> None:
    if not re.fullmatch(r"[0-9A-Za-z]{15}(?:[0-9A-Za-z]{3})?", id, re.ASCII):
        text = f"Provided external ID field does not exist or is not accessible: {id}"
        raise ApiError(404, "NOT_FOUND", text)
    expected = "ka" if object.article == "all" else object.prefix
    if not id.startswith(expected):
        raise ApiError(400, "MALFORMED_ID", f"{object.name} ID: id value of incorrect type: {id}")
    if not is_id(id):
        raise ApiError(400, "MALFORMED_ID", f"malformed id {id}")


def _choose_fields(object: ObjectType, names: str | None) -> list[Binding]:
    if names is None:
        return [Binding(field, (field.name,)) for field in object.fields]
    bindings: list[Binding] = []
    for name in names.split(","):
        field = object.get_field(name.strip())
        if field is None:
            text = f"No such column '{name.strip()}' on sobject of type {object.name}"
            raise ApiError(400, "INVALID_FIELD", text)
        bindings.append(Binding(field, (field.name,)))
    return bindings


def describe_refusal(error: ApiError) -> list[Record]:
    """Return the body of a refusal."""
    return [{"message": error.message, "errorCode": error.code}]
