"""What people call Azure's products: initials, short names and former names, which the feed itself does not use.

Source: Microsoft's product pages and documentation, and the feed's own list of products.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ALIASES: Mapping[str, tuple[str, ...]] = {
    "API Management": ("APIM",),
    "App Configuration": (),
    "App Service": ("Web Apps", "Azure Web Apps"),
    "Application Gateway": ("AppGW", "App Gateway"),
    "Archive Storage": (),
    "Azure AI Custom Vision": (),
    "Azure AI Document Intelligence": ("Form Recognizer",),
    "Azure AI Health Insights": (),
    "Azure AI Language": (),
    "Azure AI Search": ("Cognitive Search", "Azure Search"),
    "Azure AI Services": ("Cognitive Services",),
    "Azure Arc": (),
    "Azure Backup": (),
    "Azure Bastion": (),
    "Azure Blob Storage": ("Blob Storage", "Blobs"),
    "Azure Blueprints": (),
    "Azure Boost": (),
    "Azure Cache for Redis": (),
    "Azure Chaos Studio": (),
    "Azure Communication Services": ("ACS",),
    "Azure Compute Fleet": (),
    "Azure Container Apps": ("ACA",),
    "Azure Container Instances": ("ACI",),
    "Azure Container Registry": ("ACR",),
    "Azure Container Storage": (),
    "Azure Copilot": (),
    "Azure Cosmos DB": ("CosmosDB",),
    "Azure DDoS Protection": (),
    "Azure DNS": (),
    "Azure Data Box": (),
    "Azure Data Explorer": ("ADX", "Kusto"),
    "Azure Data Factory": ("ADF",),
    "Azure Data Lake Storage": ("ADLS",),
    "Azure Database Migration Service": ("DMS",),
    "Azure Database for MySQL": ("Azure MySQL", "Azure DB for MySQL"),
    "Azure Database for PostgreSQL": ("Azure PostgreSQL", "Azure Postgres", "Azure DB for PostgreSQL"),
    "Azure Databricks": ("ADB",),
    "Azure DevOps": ("ADO",),
    "Azure Disk Storage": ("managed disks", "Ultra Disk", "Premium SSD v2"),
    "Azure DocumentDB": (),
    "Azure Elastic SAN": ("ESAN",),
    "Azure Enclave": (),
    "Azure ExpressRoute": ("ExpressRoute", "ER circuit"),
    "Azure Extended Zones": (),
    "Azure Files": ("file shares",),
    "Azure Firewall Manager": (),
    "Azure Firewall": ("AzFW",),
    "Azure Front Door": ("AFD",),
    "Azure Functions": ("Function Apps",),
    "Azure HorizonDB": (),
    "Azure IoT Hub": (),
    "Azure Kubernetes Fleet Manager": (),
    "Azure Kubernetes Service (AKS)": ("AKS", "Azure Kubernetes Service"),
    "Azure Linux": (),
    "Azure Load Testing": (),
    "Azure Local": (),
    "Azure Machine Learning": ("AML", "Azure ML"),
    "Azure Managed Grafana": (),
    "Azure Managed Instance for Apache Cassandra": (),
    "Azure Managed Lustre": ("AMLFS",),
    "Azure Managed Redis": ("AMR",),
    "Azure Migrate": (),
    "Azure Modular Datacenter": (),
    "Azure Monitor": ("Log Analytics", "Application Insights", "App Insights"),
    "Azure NAT Gateway": ("NATGW",),
    "Azure NetApp Files": ("ANF",),
    "Azure OpenAI Service": ("AOAI", "Azure OpenAI"),
    "Azure Policy": (),
    "Azure Private Link": ("private endpoints",),
    "Azure Red Hat OpenShift": ("ARO",),
    "Azure Resource Manager": ("ARM templates", "Bicep"),
    "Azure Route Server": (),
    "Azure SQL Database": ("SQL DB",),
    "Azure SQL Managed Instance": ("SQL MI",),
    "Azure SRE Agent": (),
    "Azure Service Fabric": (),
    "Azure Service Health": (),
    "Azure Site Recovery": ("ASR",),
    "Azure Sphere": (),
    "Azure Spring Apps": (),
    "Azure Stack HCI": (),
    "Azure Storage Actions": (),
    "Azure Storage Mover": (),
    "Azure Stream Analytics": ("ASA",),
    "Azure Synapse Analytics": ("Synapse",),
    "Azure VM Image Builder": (),
    "Azure VMware Solution": ("AVS",),
    "Azure Virtual Desktop": ("AVD",),
    "Azure Virtual Network Manager": ("AVNM",),
    "Azure confidential ledger": ("ACL ledger",),
    "Content Delivery Network": ("Azure CDN",),
    "Emissions Impact Dashboard": (),
    "Event Grid": ("Azure Event Grid",),
    "Event Hubs": ("Azure Event Hubs",),
    "GitHub Advanced Security for Azure DevOps": (),
    "GitHub Copilot": (),
    "Key Vault": ("AKV", "Azure Key Vault"),
    "Linux Virtual Machines": (),
    "Load Balancer": ("ALB", "Azure Load Balancer"),
    "Logic Apps": ("Azure Logic Apps",),
    "Microsoft Defender for Cloud": ("MDC",),
    "Microsoft Entra ID (formerly Azure AD)": ("Azure AD", "Entra ID", "Azure Active Directory"),
    "Microsoft Fabric": (),
    "Microsoft Foundry": ("Azure AI Foundry", "Foundry", "AI Studio"),
    "Microsoft Marketplace": (),
    "Microsoft Playwright Testing": (),
    "Microsoft Purview": (),
    "Microsoft Sentinel": ("Azure Sentinel",),
    "Network Watcher": (),
    "Queue Storage": (),
    "SQL Server on Azure Virtual Machines": ("SQL VM",),
    "Service Bus": ("Azure Service Bus",),
    "Static Web Apps": ("SWA",),
    "Storage Accounts": (),
    "Table Storage": (),
    "Traffic Manager": (),
    "VPN Gateway": ("VPNGW",),
    "Virtual Machine Scale Sets": ("VMSS",),
    "Virtual Machines": ("VM", "VMs"),
    "Virtual Network": ("VNet", "NSG", "network security groups"),
    "Virtual WAN": ("vWAN",),
    "Web Application Firewall": ("WAF",),
    "Windows Virtual Machines": (),
}
"""Other names of a product, by its name in the feed."""


TAGS: Mapping[str, str] = {"feature": "Features"}
"""Tags that the feed or callers write in two ways: the folded variant, and the tag that is meant."""


def name_tag(tag: str) -> str:
    """Return the tag under which updates with this tag are found."""
    return TAGS.get(tag.strip().casefold(), tag)


def describe(products: Iterable[str]) -> str:
    """Return the products with their initials and short names, as one line to be searched; empty for none.

    Names of several words are left out: a query for any one of their words would find every update of the product.
    """
    return ", ".join(" ".join((product, *(f"({each})" for each in _list_short(product)))) for product in products)


def _list_short(product: str) -> list[str]:
    return [alias for alias in ALIASES.get(product, ()) if " " not in alias and alias not in product]


def derive_names(product: str) -> tuple[str, ...]:
    """Return names of a product that can be derived from its name: without or with the vendor, and the two parts of a
    name with brackets."""
    bare, inner = product, ""
    if bracketed := _BRACKETED.fullmatch(product):
        bare, inner = bracketed["bare"], bracketed["inner"]
    words = bare.split()
    vendor = words[0] if words[0] in _VENDORS and len(words) > 2 else ""
    other = bare.removeprefix(f"{vendor} ") if vendor else f"Azure {bare}" * (words[0] not in _VENDORS)
    return tuple(name for name in dict.fromkeys((bare, inner, other)) if name and name != product)


def list_meant(name: str) -> list[str]:
    """Return the products that a name may mean: those with that name, then those with these initials."""
    folded = name.casefold()
    called = _get_names().get(folded)
    spelt = [product for product in ALIASES if "".join(word[0] for word in product.split()).casefold() == folded]
    return list(dict.fromkeys([*([called] if called else []), *(spelt if len(folded) > 2 else [])]))


def find_products(title: str) -> tuple[str, ...]:
    """Return the products that a title names, in order; of overlapping names, the longest counts."""
    found = (_get_names()[match[0].casefold()] for match in _get_pattern().finditer(title))
    return tuple(dict.fromkeys(found))


_VENDORS = frozenset({"Azure", "Microsoft"})
_BRACKETED = re.compile(r"(?P<bare>.*\S) \((?:formerly )?(?P<inner>[^()]+)\)")


@cache
def _get_owners() -> Mapping[str, str]:
    """Return the products by all their names in the table, folded."""
    names = {alias.casefold(): product for product, aliases in ALIASES.items() for alias in aliases}
    return names | {product.casefold(): product for product in ALIASES}


@cache
def _get_names() -> Mapping[str, str]:
    """Return the products by all their names, folded; names in the table take precedence over derived ones."""
    derived = {name.casefold(): product for product in list(ALIASES)[::-1] for name in derive_names(product)}
    return {**derived, **_get_owners()}


@cache
def _get_pattern() -> re.Pattern[str]:
    longest_first = sorted(_get_names(), key=lambda name: (-len(name), name))
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)", re.IGNORECASE)
