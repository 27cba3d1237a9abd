from __future__ import annotations

import pytest

from refdesk.impact.products import find_products
from refdesk.impact.series import find_series
from refdesk.impact.versions import find_versions


@pytest.mark.parametrize(
    ("text", "series"),
    [
        ("Standard_D2s_v3", "dsv3"),
        ("az vm create --size Standard_E16ds_v5", "edsv5"),
        ("Standard_DS3_v2", "dsv2"),
        ("Standard_HB120-64rs_v2 over InfiniBand", "hbv2"),
        ("STANDARD_HC44RS", "hc"),
        ("Standard_NV36ads_A10_v5", "nvadsa10v5"),
        ("Standard_NV12s_v3", "nvv3"),
        ("two B2s", "b"),
        ("the NVv4-series", "nvv4"),
        ("F, Fs and Gs series virtual machines", "fs"),
        ("DCas_cc_v5", "dcasccv5"),
    ],
)
def test_a_size_is_of_its_series(text: str, series: str) -> None:
    assert series in {name for each in find_series(text) for name in each.names}


@pytest.mark.parametrize(
    "text", ["HC in the roster means home care", "F-series forklifts", "order HB2", "port 8443", "IPv6"]
)
def test_what_only_looks_like_a_size_is_none(text: str) -> None:
    assert find_series(text) == []


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("TLS 1.0/1.1", {("tls", "1"), ("tls", "1.1")}),
        ("TLS1.0", {("tls", "1")}),
        ("linuxFxVersion PYTHON|3.10", {("python", "3.10")}),
        ("WEBSITE_NODE_DEFAULT_VERSION to ~20", {("node", "20")}),
        ("net8.0", {("dotnet", "8")}),
        ("Python-2.7; 3.8", {("python", "2.7"), ("python", "3.8")}),
        ("the v3.0 API", {("api", "3")}),
        ("api-version 2023-05-01", {("api", "2023-05-01")}),
        ("Windows Server 2022", {("windows server", "2022")}),
        ("we run Databricks 10.4 LTS", {("databricks runtime", "10.4")}),
    ],
)
def test_versions_have_one_form(text: str, versions: set[tuple[str, str]]) -> None:
    assert {(version.name, version.number) for version in find_versions(text)} == versions


def test_a_version_may_mean_all_before_it() -> None:
    [announced] = find_versions("Kubernetes 1.27 and earlier")
    assert announced.covers(find_versions("Kubernetes 1.25.6")[0])
    assert not announced.covers(find_versions("Kubernetes 1.28")[0])
    assert not announced.covers(find_versions("Python 1.25")[0])


def test_a_brand_alone_may_be_somebodys_own() -> None:
    found = {(mention.product, mention.is_brand) for mention in find_products("AKS, and a Redis of our own")}
    assert found == {("kubernetes", False), ("redis", True)}


def test_the_longest_of_overlapping_names_counts() -> None:
    [mention] = find_products("Azure Cosmos DB for PostgreSQL")
    assert mention.product == "cosmos postgresql"
