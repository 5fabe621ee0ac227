"""The output of ``--json``: its types, those of ``mosaic.facts`` among them, their JSON Schema, and ``mosaic schema``.

The annotation of a field is its description (a text) or its least value (a number).
"""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from mosaic.choosing import Explanation
from mosaic.cli.faults import ErrorAnswer
from mosaic.cli.terminal import write_bytes
from mosaic.facts import Outliers, Proof, Settings

Values: TypeAlias = Annotated[dict[str, Any], "all columns of the row, by name; lists are left out"]
EffectiveCount: TypeAlias = Annotated[float, "number of rows that look like it, of the rows that it was compared with"]
Reason: TypeAlias = Annotated[str | None, "why it is an outlier"]
Decided: TypeAlias = Annotated[list[str], "decisions about the data and their reasons"]


@dataclass(frozen=True)
class File:
    """The data."""

    path: Annotated[str, "path as given"]
    kind: Annotated[str, "kind of file, in words"]
    rows: Annotated[int, 1, "number of rows that were compared"]
    features: Annotated[int, 1, "number of columns that were compared"]
    feature_names: Annotated[list[str] | None, "their names, null if they have none"]


@dataclass(frozen=True)
class Row:
    """A row of a file."""

    row: Annotated[int, 0, "row of the file, from 0"]
    name: Annotated[str | None, "name of the row, null if rows have only numbers"]


@dataclass(frozen=True)
class Pick(Explanation):
    """A representative, with its cells."""

    values: Values


@dataclass(frozen=True)
class JudgedRow(Row):
    """A row, and whether it is an outlier."""

    score: Annotated[float, "log of the effective count; lower is more of an outlier"]
    effective_count: EffectiveCount
    is_outlier: Annotated[bool, "whether it is an outlier"]
    reason: Reason
    values: Values


@dataclass(frozen=True)
class PlacedRow(Row):
    """A new row, and what the model says about it."""

    representative: Annotated[Row | None, "the pick that stands for it, a row of the fitted file; null without one"]
    similarity: Annotated[float | None, "similarity to that pick"]
    representation_error: Annotated[float | None, "share of the row that the picks cannot express; null without picks"]
    is_outlier: Annotated[bool, "whether it is an outlier"]
    effective_count: EffectiveCount
    reason: Reason


@dataclass(frozen=True)
class CurvePoint(Row):
    """A number k of representatives, and the row that is added at k."""

    k: Annotated[int, 1, "number of representatives"]
    similarity: Annotated[float, "mean similarity of points to their nearest representative, without outliers"]
    coverage: Annotated[float, "share of the points, without outliers, that the first k express"]


@dataclass(frozen=True)
class Model:
    """A saved model."""

    path: Annotated[str, "path as given"]
    estimator: Annotated[str, "what was fitted"]
    rows: Annotated[int, 1, "number of rows that it was fitted to"]
    n_representatives: Annotated[int, 0, "number of picks; 0 for a detector"]


@dataclass(frozen=True)
class Answer:
    """What all answers about a file have."""

    file: File
    sentence: Annotated[str, "the answer in one sentence"]
    notes: Annotated[list[str], "assumptions about the file, and warnings of the library"]
    outputs: Annotated[dict[str, str], "paths of written files: picks, labels, report, outliers, curve, model, rows"]


@dataclass(frozen=True)
class SelectAnswer(Answer):
    """The answer of select and of report."""

    coverage: Annotated[float | None, "share of the points, without outliers, that the picks express"]
    picks: Annotated[list[Pick], "representatives by rank; none for a saved model that only detects outliers"]
    outliers: Outliers
    certificate: Proof
    decisions: Decided
    settings: Settings


@dataclass(frozen=True)
class DemoAnswer(SelectAnswer):
    """The answer of demo."""

    n_noise: Annotated[int, 0, "number of images of noise among the digits"]
    n_noise_found: Annotated[int, 0, "number of images of noise that are outliers"]
    folder: Annotated[str, "folder of the written files"]


@dataclass(frozen=True)
class OutliersAnswer(Answer):
    """The answer of outliers."""

    n_outliers: Annotated[int, 0, "number of outliers"]
    rule: Annotated[str, "how the threshold was found: valley, alone, contamination, threshold or none"]
    threshold: Annotated[float | None, "effective count below which rows are outliers"]
    estimator: Annotated[str, "estimator that was used; MOSAIC if rows are read in passes"]
    rows: Annotated[list[JudgedRow], "outliers, lowest score first; with --all, all rows in the order of the file"]
    decisions: Decided
    settings: Settings


@dataclass(frozen=True)
class PredictAnswer(Answer):
    """The answer of predict."""

    model: Model
    n_outliers: Annotated[int, 0, "number of new rows that are outliers"]
    rows: Annotated[list[PlacedRow], "all rows in the order of the file"]


@dataclass(frozen=True)
class PathAnswer(Answer):
    """The answer of path."""

    suggested: Annotated[int, 1, "number of representatives that is suggested"]
    curve: Annotated[list[CurvePoint], "one entry for each k"]


@dataclass(frozen=True)
class EstimateAnswer(Answer):
    """The answer of estimate."""

    estimate: Annotated[dict[str, Any], "strategy, points, rank, and bytes and passes of the fit and of the certificate"]


@dataclass(frozen=True)
class ExplainAnswer(Answer):
    """The answer of explain."""

    decisions: Decided
    rows: Annotated[list[Explanation], "one entry for each row that was named"]


ANSWERS: dict[str, type[Any]] = {
    "select": SelectAnswer,
    "report": SelectAnswer,
    "demo": DemoAnswer,
    "outliers": OutliersAnswer,
    "predict": PredictAnswer,
    "path": PathAnswer,
    "estimate": EstimateAnswer,
    "explain": ExplainAnswer,
    "error": ErrorAnswer,
}


def schema(args: Namespace) -> int:
    """``mosaic schema``."""
    write_bytes(json.dumps(schema_of(args.of), indent=2, ensure_ascii=False).encode() + b"\n")
    return 0


def schema_of(command: str | None = None) -> dict[str, Any]:
    """The JSON Schema of the output of ``--json``, for one command, for "error", or for all.

    Examples
    --------
    >>> schema_of("select")["$ref"], list(schema_of()["$defs"]["select"]["properties"])[:3]
    ('#/$defs/select', ['schema', 'file', 'sentence'])
    """
    definitions: dict[str, Any] = {}
    for name, kind in ANSWERS.items():
        definitions[name] = _object(kind, definitions, schema={"const": f"mosaic/{name}/1"})
    of_one = {"$ref": f"#/$defs/{command}"}
    of_all = {
        "title": "What mosaic --json prints",
        "description": 'One JSON object on stdout; its "schema" says which of these it is. The number after the last slash '
        "increases with incompatible changes.",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in ANSWERS],
    }
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, **(of_all if command is None else of_one), "$defs": definitions}


def _object(kind: type[Any], definitions: dict[str, Any], **first: dict[str, Any]) -> dict[str, Any]:
    """The schema of a dataclass: all its fields and no others."""
    hints = get_type_hints(kind, include_extras=True)
    properties = first | {field.name: _schema(hints[field.name], definitions) for field in fields(kind)}
    closed = {"required": list(properties), "additionalProperties": False}
    return {"type": "object", "description": kind.__doc__, "properties": properties, **closed}


def _schema(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type; the schema of a dataclass is added to the definitions."""
    origin, args = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = _object(hint, definitions)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    if origin is Annotated:
        found = _schema(args[0], definitions)
        for more in args[1:]:
            found |= {"description": more} if isinstance(more, str) else {"minimum": more}
        return found
    if origin is Literal:
        return {"enum": list(args)}
    if origin is list or (origin is tuple and args[-1] is ...):
        return {"type": "array", "items": _schema(args[0], definitions)}
    if origin is tuple:
        return {"type": "array", "prefixItems": [_schema(arg, definitions) for arg in args], "items": False}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(args[1], definitions)}
    if type(None) in args:
        some = _schema(args[0], definitions)
        return {**some, "type": [some["type"], "null"]} if "type" in some else {"anyOf": [some, {"type": "null"}]}
    names = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return {"type": names[hint]} if hint in names else {}
