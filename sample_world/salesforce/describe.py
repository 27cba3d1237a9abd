"""The answers of the describe calls, with every key that the real ones have."""

from __future__ import annotations

from collections.abc import Iterable

from sample_world.salesforce.schema import Field, ObjectType

Json = dict[str, object]

_SOAP_TYPES = {
    "id": "tns:ID",
    "reference": "tns:ID",
    "boolean": "xsd:boolean",
    "datetime": "xsd:dateTime",
    "int": "xsd:int",
}


def list_objects(objects: Iterable[ObjectType], version: str) -> Json:
    """Return the answer that names every object."""
    described = [summarize(object, version) for object in objects]
    return {"encoding": "UTF-8", "maxBatchSize": 200, "sobjects": described}


def describe(object: ObjectType, version: str) -> Json:
    """Return everything that is told of one object."""
    base = f"/services/data/v{version}/sobjects/{object.name}"
    summary = summarize(object, version)
    return {
        **summary,
        "actionOverrides": [],
        "childRelationships": [],
        "compactLayoutable": True,
        "fields": [describe_field(field) for field in object.fields],
        "listviewable": None,
        "lookupLayoutable": None,
        "namedLayoutInfos": [],
        "networkScopeFieldName": None,
        "recordTypeInfos": [],
        "searchLayoutable": True,
        "sobjectDescribeOption": "FULL",
        "supportedScopes": [{"label": "All", "name": "everything"}],
        "urls": {
            **_urls(object, version),
            "layouts": f"{base}/describe/layouts",
            "uiDetailTemplate": "https://sample.example/{ID}",
        },
    }


def summarize(object: ObjectType, version: str) -> Json:
    """Return what the list of objects tells of one."""
    writable = object.article == "type"
    return {
        "activateable": False,
        "associateEntityType": None,
        "associateParentEntity": None,
        "createable": writable,
        "custom": False,
        "customSetting": False,
        "deepCloneable": False,
        "deletable": writable,
        "deprecatedAndHidden": False,
        "feedEnabled": False,
        "hasSubtypes": False,
        "isInterface": False,
        "isSubtype": False,
        "keyPrefix": object.prefix,
        "label": object.label,
        "labelPlural": object.label,
        "layoutable": True,
        "mergeable": False,
        "mruEnabled": False,
        "name": object.name,
        "queryable": True,
        "replicateable": False,
        "retrieveable": True,
        "searchable": object.article is not None,
        "triggerable": writable,
        "undeletable": False,
        "updateable": writable,
        "urls": _urls(object, version),
    }


def describe_field(field: Field) -> Json:
    """Return what a describe tells of one field."""
    return {**_describe_text(field), **_describe_uses(field), **_NEVER, **_describe_reference(field)}


def _urls(object: ObjectType, version: str) -> Json:
    base = f"/services/data/v{version}/sobjects/{object.name}"
    return {"sobject": base, "describe": f"{base}/describe", "rowTemplate": f"{base}/{{ID}}"}


def _describe_text(field: Field) -> Json:
    return {
        "byteLength": field.length * 3 if field.type in ("string", "textarea", "picklist") else field.length,
        "extraTypeInfo": field.extra,
        "htmlFormatted": field.extra == "richtextarea",
        "label": field.label,
        "length": field.length if field.type != "int" else 0,
        "name": field.name,
        "picklistValues": [
            {"active": True, "defaultValue": False, "label": value, "validFor": None, "value": value}
            for value in field.values
        ],
        "restrictedPicklist": bool(field.values),
        "soapType": _SOAP_TYPES.get(field.type, "xsd:string"),
        "type": field.type,
    }


def _describe_uses(field: Field) -> Json:
    writable = field.custom or field.name in ("Title", "Summary", "UrlName")
    return {
        "aggregatable": field.filterable and field.type != "boolean",
        "autoNumber": field.name == "ArticleNumber",
        "createable": writable,
        "custom": field.custom,
        "defaultedOnCreate": field.type in ("id", "boolean"),
        "digits": field.length if field.type == "int" else 0,
        "filterable": field.filterable,
        "groupable": field.filterable and field.type not in ("datetime", "textarea"),
        "idLookup": field.type == "id",
        "nameField": field.name in ("Title", "Name"),
        "nillable": field.nillable,
        "permissionable": field.custom,
        "searchPrefilterable": field.type == "picklist",
        "sortable": field.sortable,
        "updateable": writable,
    }


def _describe_reference(field: Field) -> Json:
    return {
        "referenceTo": [field.refers_to] if field.refers_to else [],
        "relationshipName": field.relation,
    }


_NEVER: Json = {
    "aiPredictionField": False,
    "calculated": False,
    "calculatedFormula": None,
    "cascadeDelete": False,
    "caseSensitive": False,
    "compoundFieldName": None,
    "controllerName": None,
    "defaultValue": None,
    "defaultValueFormula": None,
    "dependentPicklist": False,
    "deprecatedAndHidden": False,
    "displayLocationInDecimal": False,
    "encrypted": False,
    "externalId": False,
    "filteredLookupInfo": None,
    "formulaTreatNullNumberAsZero": False,
    "highScaleNumber": False,
    "inlineHelpText": None,
    "mask": None,
    "maskType": None,
    "namePointing": False,
    "polymorphicForeignKey": False,
    "precision": 0,
    "queryByDistance": False,
    "referenceTargetField": None,
    "relationshipOrder": None,
    "restrictedDelete": False,
    "scale": 0,
    "unique": False,
    "writeRequiresMasterRead": False,
}
