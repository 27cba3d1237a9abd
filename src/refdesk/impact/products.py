"""What Azure's products are called: in full, in short, by initials, and by brands shared with self-hosted software.

Source: Microsoft's product pages and documentation. A product that the feed names but this table does not is known by
the name that the feed gives it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

_NAMES = """
ai language: Azure AI Language, Language Studio, Text Analytics
ai search: Azure AI Search, Cognitive Search, Azure Search
api management: API Management, APIM
app configuration: App Configuration
app service: App Service, Web Apps, Azure Web App
application gateway: Application Gateway, AppGW, App Gateway, AGW
arc: Azure Arc, arc-enabled, arc enabled
automation: Azure Automation, Automation account, Automation accounts, Automation runbook, runbook,
    runbooks ~ Automation
avd: Azure Virtual Desktop, AVD, host pool, session hosts
avs: Azure VMware Solution, AVS ~ SDDC, private cloud
backup: Azure Backup, Recovery Services vault
batch: Azure Batch, Batch pool, Batch pools, Batch nodes ~ Batch
blob storage: Azure Blob Storage, Blob Storage, blob container, blob containers, blobs ~ blob
blueprints: Azure Blueprints, Azure Blueprint, AzBlueprint, blueprint assignment,
    blueprint assignments ~ blueprint, blueprints
cdn: Azure CDN, Content Delivery Network
computer vision: Computer Vision, Image Analysis
container apps: Azure Container Apps, Container Apps, containerapp, container app, ACA
container instances: Container Instances, ACI
container registry: Azure Container Registry, ACR
cosmos: Azure Cosmos DB, Cosmos DB, CosmosDB ~ Cosmos
cosmos postgresql: Azure Cosmos DB for PostgreSQL, Cosmos DB for PostgreSQL, postgres.cosmos.azure.com ~ Citus
custom vision: Azure Custom Vision, Custom Vision
data box: Azure Data Box, Data Box
data explorer: Azure Data Explorer, ADX, Kusto
data factory: Azure Data Factory, Data Factory, ADF
databricks: Azure Databricks, Databricks, DBR
defender: Microsoft Defender for Cloud, Defender for Cloud
devops: Azure DevOps, ADO
disk encryption: Azure Disk Encryption, AzureDiskEncryption, ADE
disks: Azure Disk Storage, managed disk, managed disks, OS disk, OS disks, osDisk, boot disk, boot disks,
    Standard HDD, Standard SSD ~ disk, disks
ultra disk: Ultra Disk, Ultra Disks, UltraSSD
premium ssd: Premium SSD
document intelligence: Document Intelligence, Form Recognizer
documentdb: Azure DocumentDB
elastic san: Elastic SAN
emissions dashboard: Emissions Impact Dashboard
entra: Microsoft Entra ID, Entra ID, Azure AD, Azure Active Directory ~ Entra
event grid: Event Grid
event hubs: Event Hubs, Event Hub
expressroute: ExpressRoute
fabric: Microsoft Fabric ~ Fabric
files: Azure Files, Azure file share, Azure file shares
firewall: Azure Firewall, AzFW, firewall policy
foundry: Microsoft Foundry, Azure AI Foundry, AI Studio, Foundry
front door: Azure Front Door, Front Door, AFD
functions: Azure Functions, Azure Function, Function App, Function Apps, functionapp, function apps,
    FUNCTIONS_EXTENSION_VERSION ~ functions
grafana: Azure Managed Grafana, Managed Grafana ~ Grafana
hdinsight: HDInsight
iot hub: IoT Hub
key vault: Azure Key Vault, Key Vault, AKV, Managed HSM
kubernetes: Azure Kubernetes Service, AKS, az aks ~ Kubernetes, node pool, node pools
load balancer: Azure Load Balancer ~ Load Balancer, ALB
load testing: Azure Load Testing, Azure App Testing
logic apps: Logic Apps, Logic App
machine learning: Azure Machine Learning, Azure ML, AzureML, AML ~ ML
managed redis: Azure Managed Redis, AMR
migrate: Azure Migrate
monitor: Azure Monitor, Log Analytics, Application Insights, App Insights, Container Insights, Monitor workspace
mysql: Azure Database for MySQL, Azure MySQL ~ MySQL
nat gateway: NAT Gateway
netapp files: Azure NetApp Files, ANF
network policy manager: Azure Network Policy Manager, Network Policy Manager, Azure NPM, network-policy azure ~ NPM
openai: Azure OpenAI, AOAI
openshift: Azure Red Hat OpenShift, ARO ~ OpenShift
playwright: Microsoft Playwright Testing, Playwright Workspaces ~ Playwright
policy: Azure Policy, assigning a policy, policy assignment
postgresql: Azure Database for PostgreSQL, Azure PostgreSQL, Azure Postgres ~ PostgreSQL, Postgres
private link: Private Link, private endpoint, private endpoints
prompt flow: Prompt flow, promptflow
purview: Microsoft Purview, Purview
redis: Azure Cache for Redis, Azure Redis, Azure Redis Cache, az redis, redis cache azure ~ Redis
resource manager: Azure Resource Manager, ARM template, ARM templates, ARM
scale sets: Virtual Machine Scale Sets, scale set, scale sets, VMSS
scom managed instance: SCOM Managed Instance, SCOM MI
sentinel: Microsoft Sentinel, Azure Sentinel, Sentinel
service bus: Azure Service Bus, Service Bus
service connector: Service Connector
service fabric: Azure Service Fabric, Service Fabric
site recovery: Azure Site Recovery, Site Recovery, ASR
speech: Azure AI Speech, Speech service
sphere: Azure Sphere
spring apps: Azure Spring Apps
sql database: Azure SQL Database, SQL DB, Azure SQL
sql managed instance: SQL Managed Instance, SQL MI
static web apps: Static Web Apps, Static Web App, SWA
storage accounts: storage account, storage accounts, storage account kind, StorageV2, GPv1, GPv2
stream analytics: Stream Analytics
synapse: Azure Synapse Analytics, Synapse
traffic manager: Traffic Manager
virtual machines: Virtual Machines, Virtual Machine, VM, VMs, vmSize, vm-size, vm-sku, host pool
virtual network: Virtual Network, virtual networks, VNet, VNets, NSG, NSGs, network security group,
    network security groups, route table, route tables
virtual network manager: Virtual Network Manager, AVNM
virtual wan: Virtual WAN, vWAN
vpn gateway: VPN Gateway, VPNGW, VpnGw, vpngw, VpnGw1, VpnGw2, point-to-site, P2S, vpnClientProtocols ~ VPN
waf: Web Application Firewall, WAF
"""
"""One line per product: `id: names ~ brands`. A brand alone may mean something else of the same name."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A product named in a text.

    Attributes:
        start, end: Offsets in the text.
        is_brand: Whether only the brand is named, which self-hosted software shares.
    """

    product: str
    start: int
    end: int
    is_brand: bool


def find_products(text: str, known: Iterable[str] = ()) -> list[Mention]:
    """Return the products that a text names, in order; of overlapping names, the longest counts.

    Args:
        text: Any text.
        known: Names of further products, as given in a record.
    """
    names, pattern = _get_names(), _get_pattern()
    found = [
        Mention(product, match.start(), match.end(), is_brand)
        for match in pattern.finditer(text)
        for product, is_brand in (names[_fold(match[0])],)
        if not _is_other_word(match[0])
    ]
    for name in known:
        found.extend(Mention(name_product(name), m.start(), m.end(), False) for m in _compile(name).finditer(text))
    return sorted(found, key=lambda mention: mention.start)


def name_product(name: str) -> str:
    """Return the id of a product that a record names."""
    bare = re.sub(r"\s*\(.*?\)", "", name).strip()
    known = _get_names().get(_fold(bare)) or _get_names().get(_fold(name))
    return known[0] if known else re.sub(r"^(azure|microsoft) ", "", _fold(bare))


def list_names(product: str) -> list[str]:
    """Return the names of a product; for one that the table does not know, its id."""
    return [name for name, (each, _) in _get_names().items() if each == product] or [product]


def _is_other_word(name: str) -> bool:
    """Return whether initials are written in lower case, like the ordinary words that they happen to be."""
    return name.islower() and name in {"ado", "arm", "ade", "aro", "asr", "anf", "ml", "batch", "fabric", "automation"}


def _fold(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name.casefold()).strip()


@cache
def _get_names() -> Mapping[str, tuple[str, bool]]:
    names: dict[str, tuple[str, bool]] = {}
    for line in re.sub(r"\n {2,}", " ", _NAMES).strip().splitlines():
        product, _, rest = line.partition(":")
        full, _, brands = rest.partition("~")
        names |= {_fold(name): (product, True) for name in brands.split(",") if name.strip()}
        names |= {_fold(name): (product, False) for name in full.split(",") if name.strip()}
    return names


@cache
def _get_pattern() -> re.Pattern[str]:
    names = sorted(_get_names(), key=lambda name: (-len(name), name))
    joined = "|".join(re.escape(name).replace(r"\ ", r"[\s_-]+") for name in names)
    return re.compile(rf"(?<![^\W_])(?:{joined})(?![^\W_])", re.IGNORECASE)


@cache
def _compile(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)
