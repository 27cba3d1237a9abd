"""The objects of an org and their fields, as a describe call tells of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

FieldType = Literal["id", "reference", "string", "textarea", "picklist", "boolean", "datetime", "int"]
OrgKind = Literal["lightning", "classic", "disabled"]

# Where the text of an article stands: custom fields of a Lightning org, in the order of its page.
BODY_FIELDS: Mapping[str, tuple[str, bool]] = {
    "Objective__c": ("Objective", True),
    "Environment__c": ("Environment", False),
    "Symptoms__c": ("Symptoms", True),
    "Cause__c": ("Cause", True),
    "Resolution__c": ("Resolution", True),
    "Procedure__c": ("Procedure", True),
}
LONG_TEXT = 32_768
LANGUAGES = ("en_US", "de", "ja")
STATUSES = ("Archived", "Draft", "Online")


@dataclass(frozen=True, slots=True)
class Field:
    """One field. `relation` is what a path through the reference is called; `extra` the describe's `extraTypeInfo`."""

    name: str
    label: str
    type: FieldType
    length: int = 0
    nillable: bool = True
    filterable: bool = True
    relation: str | None = None
    refers_to: str | None = None
    extra: Literal["plaintextarea", "richtextarea"] | None = None
    values: tuple[str, ...] = ()

    @property
    def custom(self) -> bool:
        """Whether an administrator of the org added it."""
        return self.name.endswith("__c")

    @property
    def sortable(self) -> bool:
        """Whether a query may order by it: long text has no order."""
        return self.type != "textarea" or self.filterable

    @property
    def searchable(self) -> bool:
        """Whether the search index holds its words."""
        return self.type in ("string", "textarea")


@dataclass(frozen=True, slots=True)
class ObjectType:
    """One object. `article` is `None` for what is no article, else whether it is one type or the view over all."""

    name: str
    label: str
    prefix: str
    fields: tuple[Field, ...]
    article: Literal["type", "all"] | None = None
    since: int = 0

    def get_field(self, name: str) -> Field | None:
        """Return a field by name, without regard to case, or `None`."""
        return next((field for field in self.fields if field.name.lower() == name.lower()), None)

    def get_relation(self, name: str) -> Field | None:
        """Return the reference that a path calls `name`, without regard to case, or `None`."""
        return next((field for field in self.fields if (field.relation or "").lower() == name.lower()), None)

    def without(self, hidden: Iterable[str]) -> ObjectType:
        """Return the object as one sees it who has no right to these fields."""
        names = {name.lower() for name in hidden}
        return replace(self, fields=tuple(field for field in self.fields if field.name.lower() not in names))


def build_objects(kind: OrgKind, article_object: str) -> tuple[ObjectType, ...]:
    """Return the objects of an org. `article_object` is what a Lightning org calls the object of its articles."""
    plain = (_ACCOUNT, _USER)
    if kind == "disabled":
        return plain
    if kind == "classic":
        general = (*_ARTICLE_FIELDS, Field("ArticleType", "Article Type", "string", 40, nillable=False))
        body = Field("ArticleBody", "Body", "textarea", LONG_TEXT, filterable=False, extra="richtextarea")
        types = (("FAQ__kav", "FAQ", "ka0"), ("HowTo__kav", "How-To", "ka1"))
        articles = tuple(ObjectType(*type, (*general, body), "type") for type in types)
        return (
            *plain,
            ObjectType("KnowledgeArticleVersion", "Knowledge Article Version", "ka0", general, "all"),
            *articles,
        )
    record_type = Field(
        "RecordTypeId", "Record Type ID", "reference", 18, relation="RecordType", refers_to="RecordType"
    )
    general = (*_ARTICLE_FIELDS, record_type)
    article = ObjectType(article_object, "Knowledge", "ka0", (*general, *_body_fields()), "type", since=39)
    view = ObjectType("KnowledgeArticleVersion", "Knowledge Article Version", "ka0", general, "all")
    return (*plain, _RECORD_TYPE, view, article)


def _body_fields() -> tuple[Field, ...]:
    return tuple(
        Field(
            name,
            label,
            "textarea",
            LONG_TEXT,
            filterable=False,
            extra="richtextarea" if rich else "plaintextarea",
        )
        for name, (label, rich) in BODY_FIELDS.items()
    )


def _id(label: str) -> Field:
    return Field("Id", label, "id", 18, nillable=False)


def _flag(name: str, label: str) -> Field:
    return Field(name, label, "boolean", nillable=False)


def _time(name: str, label: str, *, nillable: bool = True) -> Field:
    return Field(name, label, "datetime", nillable=nillable)


def _user(name: str, label: str, relation: str) -> Field:
    return Field(name, label, "reference", 18, relation=relation, refers_to="User")


_NAME = Field("Name", "Name", "string", 255, nillable=False)
_ACCOUNT = ObjectType("Account", "Account", "001", (_id("Account ID"), _NAME))
_USER = ObjectType("User", "User", "005", (_id("User ID"), _NAME))
_RECORD_TYPE = ObjectType(
    "RecordType",
    "Record Type",
    "012",
    (_id("Record Type ID"), _NAME, Field("DeveloperName", "Record Type Name", "string", 80, nillable=False)),
)
_ARTICLE_FIELDS = (
    _id("Knowledge Article Version ID"),
    Field("KnowledgeArticleId", "Knowledge Article ID", "reference", 18, nillable=False, refers_to="KnowledgeArticle"),
    Field("MasterVersionId", "Master Version ID", "reference", 18, refers_to="KnowledgeArticleVersion"),
    Field("VersionNumber", "Version Number", "int", 9),
    Field("ArticleNumber", "Article Number", "string", 30, nillable=False),
    Field("Title", "Title", "string", 255, nillable=False),
    Field("UrlName", "URL Name", "string", 255, nillable=False),
    Field("Summary", "Summary", "textarea", 1000, extra="plaintextarea"),
    Field("Language", "Language", "picklist", 40, nillable=False, values=LANGUAGES),
    Field("PublishStatus", "Publication Status", "picklist", 40, nillable=False, values=STATUSES),
    Field("ValidationStatus", "Validation Status", "picklist", 40, values=("Not Validated", "Validated")),
    _flag("IsLatestVersion", "Is Latest Version"),
    _flag("IsMasterLanguage", "Is Master Language"),
    _flag("IsVisibleInPkb", "Visible In Public Knowledge Base"),
    _flag("IsDeleted", "Deleted"),
    _time("FirstPublishedDate", "First Published Date"),
    _time("LastPublishedDate", "Last Published Date"),
    _time("ArchivedDate", "Archived Date"),
    _time("CreatedDate", "Created Date", nillable=False),
    _time("LastModifiedDate", "Last Modified Date", nillable=False),
    _time("SystemModstamp", "System Modstamp", nillable=False),
    _user("CreatedById", "Created By ID", "CreatedBy"),
    _user("LastModifiedById", "Last Modified By ID", "LastModifiedBy"),
    _user("OwnerId", "Owner ID", "Owner"),
    Field("ArticleTotalViewCount", "Article Total View Count", "int", 9),
)
