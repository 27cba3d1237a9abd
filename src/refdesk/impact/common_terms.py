"""How much a term says about the subject of an announcement: the less, the more titles of the feed contain it.

Counted over the titles of one year of the feed: 1 for a term in at most five titles, .2 for one in nearly all.
`python -m benchmarks.impact --count` prints the table again.
"""

from __future__ import annotations

from collections.abc import Mapping

COMMON_TERMS: Mapping[str, float] = {
    "access": 0.75, "add": 0.8, "address": 0.93, "advanc": 0.83, "agent": 0.49, "alert": 0.9, "analyt": 0.85,
    "announc": 0.71, "api": 0.61, "app": 0.5, "applic": 0.61, "arc": 0.78, "assess": 0.9, "assist": 0.87,
    "auto": 0.9, "automat": 0.85, "avail": 0.2, "azur": 0.2, "backup": 0.74, "base": 0.76, "batch": 0.83,
    "blob": 0.75, "built": 0.9, "capabl": 0.8, "catalog": 0.9, "central": 0.76, "chang": 0.9, "claud": 0.87,
    "cli": 0.87, "cloud": 0.77, "cluster": 0.8, "code": 0.72, "comput": 0.85, "confidenti": 0.73, "configur": 0.83,
    "connect": 0.77, "connector": 0.78, "consumpt": 0.78, "contain": 0.57, "content": 0.93, "control": 0.82,
    "copilot": 0.68, "cosmos": 0.55, "cross": 0.9, "custom": 0.65, "dashboard": 0.9, "data": 0.6, "databas": 0.48,
    "databrick": 0.62, "default": 0.9, "defend": 0.93, "deploy": 0.8, "disk": 0.65, "document": 0.85,
    "documentdb": 0.8, "door": 0.78, "dynam": 0.93, "elast": 0.77, "enabl": 0.73, "encrypt": 0.82, "end": 0.76,
    "endpoint": 0.9, "enhanc": 0.82, "entra": 0.77, "evalu": 0.87, "event": 0.78, "expand": 0.93, "experi": 0.82,
    "extens": 0.68, "fabric": 0.78, "featur": 0.87, "file": 0.54, "firewal": 0.8, "fleet": 0.83, "flex": 0.83,
    "flexibl": 0.6, "foundri": 0.46, "framework": 0.82, "front": 0.78, "function": 0.57, "gateway": 0.57,
    "general": 0.2, "github": 0.75, "grid": 0.9, "group": 0.87, "hat": 0.8, "horizondb": 0.93, "host": 0.85,
    "hub": 0.9, "ident": 0.85, "imag": 0.82, "index": 0.9, "insight": 0.8, "instanc": 0.83, "integr": 0.67,
    "introduc": 0.87, "key": 0.8, "knowledg": 0.82, "kubernet": 0.67, "label": 0.93, "languag": 0.93, "late": 0.9,
    "level": 0.9, "link": 0.87, "linux": 0.75, "load": 0.9, "log": 0.75, "logic": 0.69, "machin": 0.66,
    "malaysia": 0.9, "manag": 0.43, "march": 0.71, "marketplac": 0.87, "mcp": 0.67, "metric": 0.76,
    "microsoft": 0.41, "mid": 0.93, "migrat": 0.58, "mirror": 0.9, "mode": 0.85, "model": 0.73, "modern": 0.93,
    "mongodb": 0.93, "monitor": 0.63, "mover": 0.85, "mssql": 0.83, "multi": 0.93, "mysql": 0.78, "nat": 0.93,
    "nativ": 0.87, "net": 0.82, "netapp": 0.67, "network": 0.58, "new": 0.6, "nextgen": 0.9, "node": 0.76,
    "north": 0.9, "nosql": 0.87, "novemb": 0.93, "now": 0.47, "observ": 0.93, "octob": 0.93, "open": 0.93,
    "openshift": 0.8, "opentelemetri": 0.85, "oper": 0.9, "perform": 0.87, "plan": 0.93, "playground": 0.93,
    "pod": 0.93, "polici": 0.82, "pool": 0.77, "postgresql": 0.53, "premium": 0.62, "preview": 0.2, "privat": 0.66,
    "protect": 0.9, "provis": 0.85, "public": 0.2, "python": 0.77, "queri": 0.93, "recoveri": 0.8, "red": 0.8,
    "region": 0.71, "replic": 0.93, "reserv": 0.93, "resourc": 0.93, "retir": 0.43, "rout": 0.82, "rule": 0.83,
    "san": 0.85, "scale": 0.9, "sdk": 0.83, "search": 0.69, "secur": 0.73, "septemb": 0.74, "seri": 0.69,
    "server": 0.48, "serverless": 0.9, "servic": 0.48, "set": 0.93, "share": 0.9, "site": 0.8, "sku": 0.93,
    "solut": 0.9, "sourc": 0.78, "sphere": 0.93, "sql": 0.53, "ssd": 0.74, "standard": 0.71, "storag": 0.58,
    "studio": 0.72, "subscript": 0.93, "support": 0.35, "sync": 0.9, "test": 0.87, "text": 0.9, "tier": 0.76,
    "tool": 0.87, "toolkit": 0.9, "translat": 0.9, "ultra": 0.85, "updat": 0.56, "upgrad": 0.76, "user": 0.85,
    "valid": 0.9, "vault": 0.9, "vcore": 0.93, "version": 0.78, "virtual": 0.58, "visual": 0.75, "vmware": 0.93,
    "volum": 0.87, "waf": 0.83, "west": 0.82, "window": 0.82, "workload": 0.93, "workspac": 0.8, "zone": 0.76,
}  # fmt: skip
