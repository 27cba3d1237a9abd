"""Runs the emulator as a process of its own: `python -m sample_world.salesforce --port 0`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.applications import Starlette

from sample_world.salesforce.articles import load_articles, read_articles
from sample_world.salesforce.emulator import Emulator
from sample_world.salesforce.faults import parse_rules
from sample_world.salesforce.tokens import CLIENT_ID, CLIENT_SECRET, USERNAME, Sessions
from sample_world.serving import add_listening_arguments, load_json, serve

_KEY_BITS = 2048


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM, SIGINT or, where standard input is a pipe, its end.

    One line goes to standard output as soon as connections are taken: a JSON object with `url`, the instance URL,
    `control`, the address of the control side, and credentials: `client_id`, `client_secret`, `username`,
    `private_key` and `access_token`.
    """
    options = _parse_arguments(arguments)
    articles = load_articles() if options.articles is None else read_articles(load_json(options.articles))
    rules = parse_rules([] if options.faults is None else load_json(options.faults))
    private, public = _make_keys() if options.public_key is None else ("", options.public_key.read_text())

    def build(origin: str) -> tuple[Starlette, Mapping[str, str]]:
        sessions = Sessions(origin, public)
        emulator = Emulator(
            options.org, sessions, articles=articles, article_object=options.article_object, rules=rules
        )
        return emulator.build_application(), {
            "url": origin,
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
            "username": USERNAME,
            "private_key": private,
            "access_token": sessions.first_token,
        }

    serve(options, build)


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m sample_world.salesforce", description="An emulator of the Salesforce REST API."
    )
    add_listening_arguments(parser)
    parser.add_argument(
        "--org",
        choices=("lightning", "classic", "disabled"),
        default="lightning",
        help="kind of org; a disabled one has no Knowledge (default: %(default)s)",
    )
    parser.add_argument(
        "--article-object",
        type=_read_article_object,
        default="Knowledge__kav",
        help="what a Lightning org calls its articles (default: %(default)s)",
    )
    parser.add_argument("--articles", type=Path, help="hold the articles of this JSON file instead of the sample world")
    parser.add_argument(
        "--public-key", type=Path, help="PEM file to check assertions with, instead of a pair made here"
    )
    return parser.parse_args(arguments)


def _read_article_object(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z]\w*__kav", text, re.ASCII):
        raise argparse.ArgumentTypeError("an object of articles is called something__kav")
    return text


def _make_keys() -> tuple[str, str]:
    key = rsa.generate_private_key(public_exponent=65_537, key_size=_KEY_BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


if __name__ == "__main__":
    main()
