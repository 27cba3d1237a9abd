"""What a URL of a Neo4j store may say, and what it is taken to mean."""

from __future__ import annotations

import pytest

from refdesk.errors import ConfigurationError
from refdesk.stores.neo4j.address import Address, parse_address


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("neo4j://host", Address("neo4j://host:7687", None, "", None, "refdesk")),
        ("bolt://ann:secret@host:1234/db", Address("bolt://host:1234", "ann", "secret", "db", "refdesk")),
        (
            "neo4j+s://a%40b:p%2F%3A%40@db.example/?namespace=desk-2",
            Address("neo4j+s://db.example:7687", "a@b", "p/:@", None, "desk-2"),
        ),
        ("bolt://[::1]:99/my%20db", Address("bolt://[::1]:99", None, "", "my db", "refdesk")),
    ],
)
def test_a_url_names_server_user_database_and_namespace(url: str, address: Address) -> None:
    assert parse_address(url) == address


@pytest.mark.parametrize(
    "url",
    [
        "neo4j://",
        "http://host",
        "neo4j://secret@host:port",
        "neo4j://u:secret@host/a/b",
        "neo4j://u:secret@host/db#x",
        "neo4j://u:secret@host?namespace=",
        "neo4j://u:secret@host?namespace=Upper",
        "neo4j://u:secret@host?namespace=a&timeout=secret",
        "neo4j://u:secret@[::1",
        "neo4j://u:secret@host/System",
    ],
)
def test_a_url_that_cannot_be_meant_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_address(url)
    assert "secret" not in caught.value.message


def test_a_password_does_not_show_where_an_address_does() -> None:
    assert "secret" not in repr(parse_address("neo4j://ann:secret@host"))
