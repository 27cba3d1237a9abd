"""refdesk, on a machine where the embedding model is never done loading."""

from __future__ import annotations

import sys
import threading
from typing import NoReturn

from refdesk.cli import main
from refdesk.embedders.local import LocalEmbedder


def load_for_ever(self: LocalEmbedder) -> NoReturn:
    del self
    sys.stderr.write("loading\n")
    sys.stderr.flush()
    while True:
        threading.Event().wait()


if __name__ == "__main__":
    LocalEmbedder._load = load_for_ever  # pyright: ignore[reportPrivateUsage]
    main()
