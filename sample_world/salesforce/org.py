"""One org: its objects, its articles, its user's rights and its counters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, Field

from sample_world.salesforce.articles import (
    MASTER_LANGUAGE,
    USER_ID,
    USER_NAME,
    Article,
    Record,
    build_records,
    get_record_types,
)
from sample_world.salesforce.categories import sees_products
from sample_world.salesforce.errors import StatementError
from sample_world.salesforce.evaluation import Scope, find_status_outside_conjunction
from sample_world.salesforce.ids import make_id
from sample_world.salesforce.schema import LANGUAGES, ObjectType, OrgKind, build_objects
from sample_world.salesforce.statements import Condition, Path, get_conjuncts

# The articles' dates end before it, so the date literals of a query mean the same in every run.
WORLD_TIME = datetime(2026, 9, 1, 9, 0, tzinfo=UTC)
OLDEST_VERSION, NEWEST_VERSION = 31, 68
_ID_FIELDS = ("id", "knowledgearticleid", "masterversionid")
_RESTRICTION = (
    "Implementation restriction: When querying or searching the {} object, you must filter using the following syntax:"
    " Id = [single ID], Id IN [list of ID's] or PublishStatus = [status]. In addition PublishStatus is only permitted"
    " in a top-level AND condition."
)
_NOT_SUPPORTED = (
    "sObject type '{}' is not supported. If you are attempting to use a custom object, be sure to append the '__c'"
    " after the entity name. Please reference your WSDL or the describe call for the appropriate names."
)


class User(BaseModel, extra="forbid", frozen=True):
    """The rights of the user that every session runs as.

    Attributes:
        knowledge_user: Has the feature licence and reads articles; without it the org looks as if it had none.
        hidden_fields: Fields that field-level security hides, by name.
        api_enabled: The org's edition and the user's profile let the REST API in.
        products: The categories of products that data category visibility lets the user see, by name with `__c`, each
            with what is below it; `None` for all. What is filed in none is seen by everybody.
    """

    knowledge_user: bool = True
    view_drafts: bool = True
    view_archived: bool = True
    hidden_fields: tuple[str, ...] = ()
    api_enabled: bool = True
    products: tuple[str, ...] | None = None


class Usage(BaseModel, extra="forbid"):
    """How many calls of the day's limit are used, and the same for one app where `per_app` names it."""

    used: Annotated[int, Field(ge=0)] = 18
    limit: Annotated[int, Field(ge=1)] = 15_000
    per_app: tuple[int, int, str] | None = None

    def to_header(self) -> str:
        """Return the value of `Sforce-Limit-Info`."""
        header = f"api-usage={self.used}/{self.limit}"
        if self.per_app is None:
            return header
        used, limit, name = self.per_app
        return f"{header}; per-app-api-usage={used}/{limit}(appName={name})"


class Versions(BaseModel, extra="forbid"):
    """The numbers of the API versions that the org serves, both included."""

    oldest: int = OLDEST_VERSION
    newest: int = NEWEST_VERSION


class Languages(BaseModel, extra="forbid"):
    """The languages of the org's articles: the one that is meant where none is named, and all that are active."""

    default: str = MASTER_LANGUAGE
    active: tuple[str, ...] = LANGUAGES


class Org:
    """What an emulated org holds. Counters and rights change; the articles change only as a whole."""

    def __init__(self, kind: OrgKind, articles: Sequence[Article], article_object: str = "Knowledge__kav") -> None:
        self.kind: OrgKind = kind
        self.article_object = article_object
        self.user = User()
        self.usage = Usage()
        self.page_size = 2000
        self.versions = Versions()
        self.languages = Languages()
        self.changed = WORLD_TIME
        self.set_articles(articles)

    def set_articles(self, articles: Iterable[Article]) -> None:
        """Let the org hold exactly these articles."""
        self._articles = [] if self.kind == "disabled" else build_records(articles, self.kind)

    def set_user(self, user: User) -> None:
        """Give the user these rights. What describe calls answer counts as changed from now on."""
        self.user = user
        self.changed = datetime.now(UTC).replace(microsecond=0)

    @property
    def knowledge_enabled(self) -> bool:
        """Whether the org has articles at all."""
        return self.kind != "disabled"

    def get_objects(self, version: float) -> Mapping[str, ObjectType]:
        """Return what the user sees at this version of the API, by name."""
        objects = build_objects(self.kind, self.article_object)
        seen = [
            object.without(self.user.hidden_fields)
            for object in objects
            if object.since <= version and (object.article is None or self.user.knowledge_user)
        ]
        return {object.name: object for object in seen}

    def get_scope(self, path: Path, version: float, alias: str | None = None) -> Scope:
        """Return what a statement about the object that `path` names can speak of.

        Raises:
            StatementError: there is no such object, or the user does not see it.
        """
        objects = self.get_objects(version)
        name = str(path)
        object = next((object for object in objects.values() if object.name.lower() == name.lower()), None)
        if object is None:
            raise StatementError("INVALID_TYPE", _NOT_SUPPORTED.format(name), path.position)
        return Scope(object, objects, WORLD_TIME, alias)

    def get_records(self, object: ObjectType) -> list[Record]:
        """Return every record of an object that the user may see, in the order of their ids."""
        if object.article is None:
            return _PLAIN_RECORDS.get(object.name, [])
        records = self._articles
        if self.kind == "classic" and object.article == "type":
            records = [record for record in records if record["ArticleType"] == object.name]
        return [record for record in records if self._may_see(record)]

    def _may_see(self, record: Record) -> bool:
        allowed = {"Draft": self.user.view_drafts, "Archived": self.user.view_archived}
        return allowed.get(str(record["PublishStatus"]), True) and sees_products(record, self.user.products)

    def select(self, scope: Scope, where: Condition | None, version: float) -> list[Record]:
        """Return the records of a scope that meet a condition, under the rules for publication statuses.

        A Classic org demands a status or ids. Without a status a Lightning org gives the published versions up to
        version 46 of the API, and drafts and archived ones as well from 47 on. Versions that a later one has replaced
        are found by the id of their article alone, together with either no status or `IsLatestVersion`.

        Raises:
            StatementError: the condition cannot be put to the object, or breaks those rules.
        """
        matches = scope.compile(where)
        records = self.get_records(scope.object)
        if scope.object.article is not None:
            records = self._restrict(scope.object, where, records, version)
        return [record for record in records if matches(record)]

    def _restrict(
        self, object: ObjectType, where: Condition | None, records: list[Record], version: float
    ) -> list[Record]:
        misplaced = find_status_outside_conjunction(where)
        names = {comparison.path.names[-1].lower() for comparison in get_conjuncts(where)}
        by_id = any(_names_ids(comparison.path, comparison.operator) for comparison in get_conjuncts(where))
        by_status = "publishstatus" in names
        if misplaced or (self.kind == "classic" and not by_status and not by_id):
            raise StatementError(
                "MALFORMED_QUERY", _RESTRICTION.format(object.name), misplaced.position if misplaced else 0
            )
        if not (by_id and (not by_status or "islatestversion" in names)):
            records = [record for record in records if not record["IsSuperseded"]]
        if version < 47 and not by_status and not by_id:
            records = [record for record in records if record["PublishStatus"] == "Online"]
        return records

    def count_views(self, records: Iterable[Record]) -> None:
        """Count one view for each article, as `UPDATE VIEWSTAT` does."""
        seen = {record["KnowledgeArticleId"] for record in records}
        for record in self._articles:
            if record["KnowledgeArticleId"] in seen:
                record["ArticleTotalViewCount"] = int(str(record["ArticleTotalViewCount"])) + 1


def _names_ids(path: Path, operator: str) -> bool:
    return path.names[-1].lower() in _ID_FIELDS and operator in ("=", "IN")


_PLAIN_RECORDS: Mapping[str, list[Record]] = {
    "Account": [
        {"Id": make_id("001", 1), "Name": "Café Zum Löwen"},
        {"Id": make_id("001", 2), "Name": "Pemberton & Sons"},
    ],
    "User": [{"Id": USER_ID, "Name": USER_NAME}],
    "RecordType": get_record_types(),
}
