"""The invented help desk's articles, and the records that an org makes of them."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, Field, TypeAdapter

from sample_world.salesforce.ids import make_id
from sample_world.salesforce.schema import BODY_FIELDS, LANGUAGES, OrgKind

FOLDER = Path(__file__).resolve().parent / "data"
MASTER_LANGUAGE = "en_US"
USER_ID = make_id("005", 42)
USER_NAME = "Marrowby Help Desk"
RECORD_TYPES: Mapping[str, str] = {
    "FAQ": "FAQ",
    "How_To": "How-To",
    "Troubleshooting": "Troubleshooting",
}

Record = dict[str, object]


class Version(BaseModel, extra="forbid", frozen=True):
    """One version of an article in one language.

    Attributes:
        number: Counts from 1 within the language.
        status: `Archived` is what was in force once.
        superseded: A later version of the same language took its place.
        published: When it went online; `None` for a draft that never did.
        sections: HTML, or plain text for `Environment__c`, by body field.
    """

    language: Literal["en_US", "de", "ja"] = "en_US"
    number: Annotated[int, Field(ge=1, lt=100)] = 1
    status: Literal["Online", "Draft", "Archived"] = "Online"
    superseded: bool = False
    created: AwareDatetime
    published: AwareDatetime | None = None
    archived: AwareDatetime | None = None
    title: Annotated[str, Field(min_length=1, max_length=255)]
    summary: Annotated[str, Field(max_length=1000)] | None = None
    url_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$", max_length=255)]
    sections: dict[str, str] = {}


class Article(BaseModel, extra="forbid", frozen=True):
    """One article: what its versions share, and the versions. `categories` are data categories by group."""

    number: Annotated[int, Field(ge=1, lt=10**9)]
    type: Literal["FAQ", "How_To", "Troubleshooting"] = "FAQ"
    categories: dict[str, list[str]] = {}
    versions: Annotated[list[Version], Field(min_length=1)]


_ARTICLES = TypeAdapter(list[Article])


def load_articles() -> list[Article]:
    """Return the sample world's articles in the order of the file."""
    return read_articles(json.loads((FOLDER / "articles.json").read_text(encoding="utf-8")))


def read_articles(value: object) -> list[Article]:
    """Return the articles in a JSON list.

    Raises:
        ValueError: it is no list of articles, or two have the same number; pydantic's error says where.
    """
    articles = _ARTICLES.validate_python(value)
    if len({article.number for article in articles}) < len(articles):
        raise ValueError("Two articles have the same number.")
    return articles


def build_records(articles: Iterable[Article], kind: OrgKind) -> list[Record]:
    """Return one record for each version, by id. `DataCategories` and `IsSuperseded` are for the emulator alone."""
    records = [record for article in articles for record in _build_versions(article, kind)]
    return sorted(records, key=lambda record: str(record["Id"]))


def get_record_types() -> list[Record]:
    """Return the record types of a Lightning org."""
    return [{"Id": _record_type_id(name), "Name": label, "DeveloperName": name} for name, label in RECORD_TYPES.items()]


def _build_versions(article: Article, kind: OrgKind) -> Iterator[Record]:
    family = "1" if kind == "classic" and article.type == "How_To" else "0"
    published = [version.published for version in article.versions if version.published]
    master = next((version for version in article.versions if version.language == MASTER_LANGUAGE), None)
    for version in article.versions:
        yield {
            "Id": _version_id(article, version, family),
            "KnowledgeArticleId": make_id(f"kA{family}", article.number),
            "MasterVersionId": None
            if master is None or version.language == MASTER_LANGUAGE
            else _version_id(article, master, family),
            "ArticleNumber": f"{article.number:09}",
            "FirstPublishedDate": min(published, default=None),
            "IsDeleted": False,
            "ArticleTotalViewCount": 0,
            "DataCategories": article.categories,
            **_people(),
            **_build_version(version),
            **_build_kind(article, kind),
            **_build_bodies(version.sections, kind),
        }


def _version_id(article: Article, version: Version, family: str) -> str:
    language = LANGUAGES.index(version.language)
    return make_id(f"ka{family}", article.number * 1000 + language * 100 + version.number)


def _build_version(version: Version) -> Record:
    changed: datetime = version.archived or version.published or version.created
    return {
        "VersionNumber": version.number,
        "Title": version.title,
        "UrlName": version.url_name,
        "Summary": version.summary,
        "Language": version.language,
        "PublishStatus": version.status,
        "ValidationStatus": "Not Validated" if version.status == "Draft" else "Validated",
        "IsLatestVersion": not version.superseded,
        "IsMasterLanguage": version.language == MASTER_LANGUAGE,
        "IsVisibleInPkb": version.status == "Online",
        "IsSuperseded": version.superseded,
        "LastPublishedDate": version.published,
        "ArchivedDate": version.archived,
        "CreatedDate": version.created,
        "LastModifiedDate": changed,
        "SystemModstamp": changed,
    }


def _people() -> Record:
    user = {"Id": USER_ID, "Name": USER_NAME}
    record: Record = {}
    for role in ("CreatedBy", "LastModifiedBy", "Owner"):
        record |= {f"{role}Id": USER_ID, role: user}
    return record


def _build_kind(article: Article, kind: OrgKind) -> Record:
    if kind == "classic":
        return {"ArticleType": "HowTo__kav" if article.type == "How_To" else "FAQ__kav"}
    return {
        "RecordTypeId": _record_type_id(article.type),
        "RecordType": {
            "Id": _record_type_id(article.type),
            "Name": RECORD_TYPES[article.type],
            "DeveloperName": article.type,
        },
    }


def _record_type_id(name: str) -> str:
    return make_id("012", 1 + list(RECORD_TYPES).index(name))


def _build_bodies(sections: Mapping[str, str], kind: OrgKind) -> Record:
    if kind != "classic":
        return {field: sections.get(field) for field in BODY_FIELDS}
    parts = [_join_section(field, sections[field]) for field in BODY_FIELDS if field in sections]
    return {"ArticleBody": "\n".join(parts) or None}


def _join_section(field: str, text: str) -> str:
    label, rich = BODY_FIELDS[field]
    shown = text if rich else f"<p>{html.escape(text)}</p>".replace("\n", "<br>")
    return f"<h2>{label}</h2>\n{shown}"
