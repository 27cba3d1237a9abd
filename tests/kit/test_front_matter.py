from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refdesk.kit import front_matter
from refdesk.model import JsonValue
from tests.toolsets.knowledge.transfer.test_round_trip import TEXTS, VALUES


@given(values=st.dictionaries(st.sampled_from(["id", "title", "expiresAt"]), VALUES), body=TEXTS)
def test_what_is_written_is_read_back(values: dict[str, JsonValue], body: str) -> None:
    scalars = {name: value for name, value in values.items() if not isinstance(value, bool | float)}
    inner, rest = front_matter.split(front_matter.write(scalars) + body)
    assert inner is not None
    matter = front_matter.read(inner)
    assert (matter.values, matter.refused, rest) == (scalars, [], body)


def test_nothing_that_yaml_forbids_stands_for_itself() -> None:
    written = front_matter.write({"title": "a\x7f\x85\u2028\u2029\ufeff\ufffe\x00\x1b\r\n é \U0001f600"})
    assert written.splitlines() == [
        "---",
        'title: "a\\u007f\\u0085\\u2028\\u2029\\ufeff\\ufffe\\u0000\\u001b\\r\\n é \U0001f600"',
        "---",
    ]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("title: Coffee: a method", {"title": "Coffee: a method"}),
        ("title: it's  # a comment", {"title": "it's"}),
        ("title: 'it''s # here'", {"title": "it's # here"}),
        ('title: "a \\"b\\" \\u00e9"  # c', {"title": 'a "b" é'}),
        ("title: #no", {"title": None}),
        ("title: a#b", {"title": "a#b"}),
        ("tags: [a, 'b, c', \"d, e\", it's]", {"tags": ["a", "b, c", "d, e", "it's"]}),
        ('tags: ["a", "b"]', {"tags": ["a", "b"]}),
        ("tags: []", {"tags": []}),
        ("tags: [a, ]", {"tags": ["a"]}),
        ("tags: [a] # c", {"tags": ["a"]}),
        ("tags:\n- a\n- b # c\n-   'c'\nnext: 1", {"tags": ["a", "b", "c"], "next": 1}),
        ("tags:\n  - a\n\n  # why\n  - b", {"tags": ["a", "b"]}),
        ("tags:", {"tags": None}),
        ("count: 007", {"count": "007"}),
        ("count: -5", {"count": -5}),
        ("flag: true", {"flag": "true"}),
        ("empty: ~\nnone: null", {"empty": None, "none": None}),
        ("date: 2026-01-02", {"date": "2026-01-02"}),
        ("url: http://x.test/a?b", {"url": "http://x.test/a?b"}),
        ("last updated: x\r\nnext: y\r", {"last updated": "x", "next": "y"}),
        ("a: |\nb: >-", {"a": "", "b": ""}),
        ("text: |\n  one\n   two\n\n  # three\nnext: 1", {"text": "one\n two\n\n# three\n", "next": 1}),
        ("text: |-\n  one\n  two", {"text": "one\ntwo"}),
        ("text: >\n  one\n  two\n\n  three\n", {"text": "one two\nthree\n"}),
        ("title: one\n  two", {"title": "one two"}),
        ('title: "one\n  two"', {"title": "one two"}),
        ("a: [[x]]", {"a": [["x"]]}),
        ("a: {x: y, n: 3}", {"a": {"x": "y", "n": 3}}),
        ("a: [x, {y: z}]", {"a": ["x", {"y": "z"}]}),
        ("a: [x,\n  y]", {"a": ["x", "y"]}),
        ("a:\n  b:\n    c: 1\n    d: [e]\n  f: ~", {"a": {"b": {"c": 1, "d": ["e"]}, "f": None}}),
        (
            "people:\n- name: Ann\n  born: 1990-01-02\n- name: Bo",
            {"people": [{"name": "Ann", "born": "1990-01-02"}, {"name": "Bo"}]},
        ),
        (
            "a:\n  yes: no\n  on: 2026-01-02T03:04:05Z\n  007: 0x1F",
            {"a": {"yes": "no", "on": "2026-01-02T03:04:05Z", "007": "0x1F"}},
        ),
    ],
)
def test_what_people_and_other_programs_write_is_read(text: str, values: dict[str, JsonValue]) -> None:
    matter = front_matter.read(text)
    assert (matter.values, matter.refused) == (values, [])


@pytest.mark.parametrize(
    "line",
    [
        "a: &x [1]",
        "a: *x",
        "<<: *x",
        "a: !!python/object:os.system x",
        "a: [x",
        "a: 'x",
        'a: "x',
        'a: "x" y',
        'a: "\\ud800"',
        "  nested: x",
        "words",
        "- item",
        ": x",
        "a: @x",
        f"a: {'x' * 10_001}",
        "[" * 5000 + "]" * 5000,
        "a: " + "[" * 5000 + "]" * 5000,
        'a: {"b": 1, "b": 2}',
        "a: {b: 1, b: 2}",
        "a: {b: !!binary eA==}",
        "a: [&x 1, *x]",
        "a: {? [b] : c}",
        "a: {b: \x07}",
    ],
)
def test_the_rest_of_yaml_is_refused_line_by_line(line: str) -> None:
    matter = front_matter.read(f"title: x\n{line}\nlast: y")
    assert [number for number, _ in matter.refused] == [3]
    assert matter.values == {"title": "x", "last": "y"}


@pytest.mark.parametrize(
    "more",
    [
        "  b: &x [1]",
        "  <<: *x",
        "  b: !!python/object/apply:os.system [id]",
        "  b: 1\n  b: 2",
        "\tb: 1",
        "  b: 1\n c: 2",
    ],
    ids=["anchor", "merge", "tag", "twice", "tab", "indentation"],
)
def test_a_map_of_bad_yaml_costs_itself_only(more: str) -> None:
    matter = front_matter.read(f"title: x\na:\n{more}\nlast: y")
    assert [number for number, _ in matter.refused] == [4]
    assert matter.values == {"title": "x", "a": None, "last": "y"}


def test_nothing_is_nested_without_end() -> None:
    deep = "\n".join(f"{'  ' * depth}a:" for depth in range(1, 100))
    matter = front_matter.read(f"title: x\na:\n{deep}\nlast: y")
    assert matter.values == {"title": "x", "a": None, "last": "y"}
    assert [reason for _, reason in matter.refused] == ["is nested too deep"]


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ("a: |\n" + "  x\n" * 20_000, "is longer than the 65536 characters of YAML that are read"),
        ("a:\n" + "  - b: [,]\n" * 5_500, None),
        ("a:\n" + "  - b: [x, y]\n" * 4_500, "holds more than 10000 values"),
        (
            "a: |\n"
            + ("  " + "x" * 200 + "\n") * 300
            + "\n"
            + "".join(f"a{n}: |\n" + ("  " + "x" * 200 + "\n") * 300 for n in range(9)),
            "is beyond the 262144 characters of YAML that are read",
        ),
    ],
    ids=["long", "wrong", "many", "all together"],
)
@pytest.mark.timeout(30)
def test_yaml_is_bounded(field: str, reason: str | None) -> None:
    matter = front_matter.read(f"{field}\nlast: y")
    assert matter.values["last"] == "y"
    assert matter.refused
    assert reason is None or reason in {why for _, why in matter.refused}


def test_a_name_twice_is_refused() -> None:
    matter = front_matter.read("a: 1\na: 2")
    assert (matter.values, matter.refused) == ({"a": 1}, [(3, "repeats a")])


def test_a_bomb_of_aliases_stays_as_small_as_it_was() -> None:
    lines = ["a0: &a0 [x, x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}]" for n in range(1, 40))]
    matter = front_matter.read("\n".join(lines))
    assert (matter.values, len(matter.refused)) == ({}, 40)


@pytest.mark.parametrize(
    "line",
    [
        "a" * 2_000_000,
        "a:" + " " * 2_000_000 + "b",
        "a: b" + " " * 2_000_000 + "c#",
        "a: [" + "'" * 2_000_000,
        "-" * 2_000_000,
    ],
    ids=["name", "blanks", "inner-blanks", "quotes", "dashes"],
)
@pytest.mark.timeout(10)
def test_a_huge_line_is_read_in_linear_time(line: str) -> None:
    assert len(front_matter.read(line).refused) <= 1


@pytest.mark.parametrize("text", ["", "text", "---", "---\n", "---\ntitle: x", "----\na: 1\n---\n", " ---\n---\n"])
def test_what_does_not_begin_and_end_with_a_fence_is_body(text: str) -> None:
    assert front_matter.split(text) == (None, text)
