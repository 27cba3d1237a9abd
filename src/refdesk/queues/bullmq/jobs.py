"""The job format in Redis, a contract with workers in other languages: docs/reference/queue.md."""

from __future__ import annotations

import hashlib
import json
from typing import Any, cast

from refdesk.protocols import EmbeddingJob

QUEUE_NAME = "embeddings"
JOB_NAME = "embed"
ATTEMPTS = 5
FIRST_RETRY_MILLISECONDS = 1000
LONGEST_NAME = 256
LAST_PRIORITY = 2**21 - 1
"""The highest number a priority may have. Jobs with higher numbers come later; 0, BullMQ's default, comes first."""

FIELDS = {"org": "org", "toolset": "toolset", "id": "id", "textDigest": "text_digest"}
REQUIRED = frozenset({"org", "toolset", "id"})


def name_job(job: EmbeddingJob) -> str:
    """Return the job's id: the same for the same text of the same document, so that it is queued at most once.

    BullMQ accepts no id that contains a colon or is a number.
    """
    parts = "\x00".join((job.org, job.toolset, job.id, job.text_digest))
    return f"embed-{hashlib.blake2b(parts.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"


def write_job(job: EmbeddingJob, priority: int = 0) -> dict[str, Any]:
    """Return a job as BullMQ takes it, to be removed once it has ended: its id would block the next one."""
    return {
        "name": JOB_NAME,
        "data": {name: value for name, field in FIELDS.items() if (value := getattr(job, field))},
        "opts": {
            "jobId": name_job(job),
            "attempts": ATTEMPTS,
            "priority": min(priority, LAST_PRIORITY),
            "backoff": {"type": "exponential", "delay": FIRST_RETRY_MILLISECONDS},
            "removeOnComplete": True,
            "removeOnFail": True,
        },
    }


def read_job(data: object) -> EmbeddingJob | None:
    """Return the job that untrusted data describe, or `None` if they describe none; unknown fields are ignored."""
    if not isinstance(data, dict):
        return None
    known = {FIELDS[name]: value for name, value in cast("dict[str, object]", data).items() if name in FIELDS}
    values = {name: value for name, value in known.items() if isinstance(value, str) and value.isprintable()}
    if len(values) < len(known) or REQUIRED - set(values):
        return None
    if any(not 0 < len(values[name]) <= LONGEST_NAME for name in REQUIRED):
        return None
    return EmbeddingJob(**values)


def read_record(data: str | None) -> EmbeddingJob | None:
    """Return the job whose data are stored as this text, or `None` if it describes none or is not JSON."""
    try:
        return read_job(json.loads(data)) if data is not None else None
    except (ValueError, RecursionError):
        return None
