"""The output of ``--json``: its types, their JSON Schema, and ``mosaic schema``.

The annotation of a field is its description (a text) or its least value (a number).
"""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from mosaic.cli.terminal import write_bytes
from mosaic.text import json_text, jsonable

FromZero: TypeAlias = Annotated[int, 0]
FromOne: TypeAlias = Annotated[int, 1]
FaultKind: TypeAlias = Literal["unexpected", "usage", "input", "output", "memory", "missing", "interrupted"]
Sentence: TypeAlias = Annotated[str, "the answer in one sentence"]
EffectiveCount: TypeAlias = Annotated[float, "number of rows that look like it, of the rows that it was compared with"]
Values: TypeAlias = Annotated[dict[str, Any], "all columns of the row, by name; lists are left out"]
Rule: TypeAlias = Annotated[str, "how the threshold was found: valley, alone, contamination, threshold or none"]
Threshold: TypeAlias = Annotated[float | None, "effective count below which rows are outliers"]
Notes: TypeAlias = Annotated[list[str], "assumptions about the file, and warnings of the library"]
Outputs: TypeAlias = Annotated[
    dict[str, str], "paths of written files: picks, labels, report, outliers, curve, model, rows"
]


@dataclass(frozen=True)
class File:
    """The data."""

    path: Annotated[str, "path as given"]
    kind: Annotated[str, "kind of file, in words"]
    rows: Annotated[FromOne, "number of rows that were compared"]
    features: Annotated[FromOne, "number of numeric columns that were compared"]
    feature_names: Annotated[list[str] | None, "their names, null if they have none"]


@dataclass(frozen=True)
class Row:
    """A row of the file."""

    row: Annotated[FromZero, "row of the file, from 0"]
    id: Annotated[str | None, "name of the row, null if rows have only numbers"]


@dataclass(frozen=True)
class Pick(Row):
    """A representative."""

    rank: Annotated[FromOne, "rank, from 1"]
    stands_for: Annotated[FromZero, "number of rows that it represents, itself included"]
    effective_count: EffectiveCount
    is_outlier: Annotated[bool, "possible with --outliers report only"]
    reason: Annotated[str, "why it was chosen"]
    values: Values


@dataclass(frozen=True)
class Outlier(Row):
    """An outlier."""

    effective_count: EffectiveCount
    reason: Annotated[str, "why it is an outlier"]


@dataclass(frozen=True)
class Outliers:
    """Rows that few others look like."""

    n: Annotated[FromZero, "number of outliers"]
    rule: Rule
    count_threshold: Threshold
    lowest: Annotated[list[Outlier], "at most 50, lowest effective count first"]


@dataclass(frozen=True)
class Certificate:
    """The certificate; values are null if they were not requested or cannot be proven."""

    gap: Annotated[float | None, "relative duality gap of the program"]
    kernel_error: Annotated[float | None, "share of the kernel that the factor misses"]
    rank: Annotated[FromZero | None, "columns of the factor"]
    error: Annotated[float | None, "unexplained part that the picks leave, by least squares with this ridge"]
    bound: Annotated[float | None, "lower bound of the error of every set of as many rows, at this ridge"]
    excess: Annotated[float | None, "error / bound − 1: largest possible distance from the best set"]
    sentence: Annotated[str, "the certificate in words"]
    ridge: Annotated[float | None, "ridge of least squares: the mean similarity of a row to itself"]
    total: Annotated[float | None, "total to be explained, of which errors and bounds are parts"]
    error_without_ridge: Annotated[float | None, "error of the picks without a ridge"]
    bound_without_ridge: Annotated[float | None, "lower bound of the error of every set of as many, without a ridge"]


@dataclass(frozen=True)
class Settings:
    """How the answer was found."""

    parameters: Annotated[dict[str, Any], "parameters of the estimator, by name"]
    alpha: Annotated[float | None, "strength, as a multiple of the critical one"]
    lam: Annotated[float | None, "strength"]
    gamma: Annotated[float | None, "bandwidth"]
    sentences: Annotated[list[str], "decisions and their reasons"]
    versions: Annotated[dict[str, str], "versions of the library and of the packages that affect the numbers"]


@dataclass(frozen=True)
class SelectAnswer:
    """The answer of select."""

    file: File
    sentence: Sentence
    n_representatives: Annotated[FromOne, "number of picks"]
    coverage: Annotated[float, "share of the points, without outliers, that the picks express"]
    picks: Annotated[list[Pick], "representatives by rank"]
    outliers: Outliers
    certificate: Certificate
    settings: Settings
    notes: Notes
    outputs: Outputs


@dataclass(frozen=True)
class ReportAnswer(SelectAnswer):
    """The answer of report."""

    n_representatives: Annotated[FromZero, "number of picks; 0 for a saved model that only detects outliers"]


@dataclass(frozen=True)
class DemoAnswer(SelectAnswer):
    """The answer of demo."""

    n_noise: Annotated[FromZero, "number of images of noise among the digits"]
    n_noise_found: Annotated[FromZero, "number of images of noise that are outliers"]
    folder: Annotated[str, "folder of the written files"]


@dataclass(frozen=True)
class JudgedRow(Row):
    """A row, and whether it is an outlier."""

    score: Annotated[float, "log of the effective count; lower is more of an outlier"]
    effective_count: EffectiveCount
    is_outlier: Annotated[bool, "whether it is an outlier"]
    reason: Annotated[str | None, "why it is an outlier"]
    values: Values


@dataclass(frozen=True)
class OutliersAnswer:
    """The answer of outliers."""

    file: File
    sentence: Sentence
    n_outliers: Annotated[FromZero, "number of outliers"]
    rule: Rule
    count_threshold: Threshold
    estimator: Annotated[
        Literal["MOSAICOutlierDetector", "MOSAIC"], "estimator that was used; MOSAIC if rows are read in passes"
    ]
    rows: Annotated[list[JudgedRow], "outliers, lowest score first; with --all, all rows in the order of the file"]
    certificate: Certificate
    settings: Settings
    notes: Notes
    outputs: Outputs


@dataclass(frozen=True)
class Model:
    """A saved model."""

    path: Annotated[str, "path as given"]
    estimator: Annotated[Literal["MOSAIC", "MOSAICSampler", "MOSAICOutlierDetector"], "what was fitted"]
    rows: Annotated[FromOne, "number of rows that it was fitted to"]
    n_representatives: Annotated[FromZero, "number of picks; 0 for a detector"]


@dataclass(frozen=True)
class PlacedRow(Row):
    """A new row, and what the model says about it."""

    representative: Annotated[Row | None, "the pick that stands for it, a row of the fitted file; null without one"]
    similarity: Annotated[float | None, "similarity to that pick"]
    representation_error: Annotated[float | None, "share of the row that the picks cannot express; null without picks"]
    is_outlier: Annotated[bool, "whether it is an outlier"]
    effective_count: EffectiveCount
    reason: Annotated[str | None, "why it is an outlier"]


@dataclass(frozen=True)
class PredictAnswer:
    """The answer of predict."""

    file: File
    model: Model
    sentence: Sentence
    n_outliers: Annotated[FromZero, "number of new rows that are outliers"]
    rows: Annotated[list[PlacedRow], "all rows in the order of the file"]
    notes: Notes
    outputs: Outputs


@dataclass(frozen=True)
class CurvePoint(Row):
    """A number k of representatives, and the row that is added at k."""

    k: Annotated[FromOne, "number of representatives"]
    similarity: Annotated[float, "mean similarity of points to their nearest representative, without outliers"]
    coverage: Annotated[float, "share of the points, without outliers, that the first k express"]


@dataclass(frozen=True)
class PathAnswer:
    """The answer of path."""

    file: File
    sentence: Sentence
    suggested: Annotated[FromOne, "number of representatives that is suggested"]
    curve: Annotated[list[CurvePoint], "one entry for each k"]
    notes: Notes
    outputs: Outputs


@dataclass(frozen=True)
class EstimateAnswer:
    """The answer of estimate."""

    file: File
    sentence: Sentence
    strategy: Annotated[Literal["exact", "low-rank", "sketch"], "strategy that select would use"]
    n_points: Annotated[FromOne, "number of distinct points; of many rows, of rows"]
    rank: Annotated[FromZero, "columns of the factor; for a sketch, number of candidates"]
    memory: Annotated[float, "peak memory of the fit in bytes, without the data"]
    passes: Annotated[FromZero, "times that the rows are read, 0 if they are in memory"]
    proof_memory: Annotated[
        float, "peak memory of the certificate in bytes, if it is requested, without the data, at most"
    ]
    least_proof_memory: Annotated[float, "proof_memory, at least; it depends on the data"]
    proof_passes: Annotated[FromZero, "times that the rows are read for the certificate, at most"]
    notes: Notes


@dataclass(frozen=True)
class Difference:
    """A feature in which a row differs from its representative."""

    feature: Annotated[str, "its name"]
    share: Annotated[float, "share of the distance to the representative"]


@dataclass(frozen=True)
class ExplainedRow(Row):
    """Why a row was chosen, rejected or left out."""

    called: Annotated[str, "name of the row in a sentence"]
    status: Annotated[
        Literal["representative", "outlier", "represented", "belongs"],
        "role of the row in the answer; a saved model that only detects outliers knows outlier and belongs",
    ]
    reason: Annotated[str, "why"]
    rank: Annotated[FromOne | None, "place among the picks, from 1"]
    effective_count: EffectiveCount
    outlier_probability: Annotated[float, "the paper's OP"]
    representation_error: Annotated[float | None, "share of the row that the picks cannot express; null without picks"]
    represented_by: Annotated[Row | None, "the pick that stands for it; null for rejected outliers"]
    similarity: Annotated[float | None, "similarity to that pick"]
    stands_for: Annotated[FromZero, "number of rows that it represents"]
    members: Annotated[list[Row], "the most similar rows that it represents"]
    differs_in: Annotated[list[Difference], "largest share first"]


@dataclass(frozen=True)
class ExplainAnswer:
    """The answer of explain."""

    file: File
    settings: Annotated[list[str], "decisions about the data and their reasons"]
    rows: Annotated[list[ExplainedRow], "one entry for each row that was named"]
    notes: Notes


@dataclass(frozen=True)
class CompletionAnswer:
    """The answer of completion."""

    shell: Annotated[Literal["bash", "zsh", "tcsh"], "shell of the script"]
    script: Annotated[str, "script that the shell sources"]


@dataclass(frozen=True)
class Fault:
    """What went wrong."""

    kind: Annotated[FaultKind, "each kind has its exit code"]
    message: Annotated[str, "the whole message"]
    parameter: Annotated[str | None, "option that caused the error"]
    value: Annotated[str | None, "value of the option"]
    fault: Annotated[str | None, "what is wrong"]
    remedy: Annotated[str | None, "what to do"]
    file: Annotated[str | None, "file that caused the error"]
    where: Annotated[str | None, "line or column in the file"]
    exit_code: Annotated[
        int, "1 unexpected, 2 usage, 3 input, 4 output, 5 memory, 6 missing library, 128 + number of the signal"
    ]


@dataclass(frozen=True)
class ErrorAnswer:
    """The answer of a command that has failed."""

    error: Fault


ANSWERS: dict[str, type[Any]] = {
    "select": SelectAnswer,
    "report": ReportAnswer,
    "demo": DemoAnswer,
    "outliers": OutliersAnswer,
    "predict": PredictAnswer,
    "path": PathAnswer,
    "estimate": EstimateAnswer,
    "explain": ExplainAnswer,
    "completion": CompletionAnswer,
    "error": ErrorAnswer,
}


def write_answer(command: str, answer: Any) -> None:
    """Write one object on one line, without NaN and Infinity, which are not JSON."""
    text = json_text({"schema": _version(command), **jsonable(asdict(answer))})
    # Invalid characters, as in names of files that are not UTF-8, become JSON escapes.
    write_bytes(text.encode("utf-8", "backslashreplace") + b"\n")


def schema(args: Namespace) -> int:
    """``mosaic schema``."""
    write_bytes(json.dumps(schema_of(args.of), indent=2, ensure_ascii=False).encode() + b"\n")
    return 0


def _version(command: str) -> str:
    return f"mosaic/{command}/1"


def schema_of(command: str | None = None) -> dict[str, Any]:
    """The JSON Schema of the output of ``--json``, for one command, for "error", or for all.

    Examples
    --------
    >>> schema_of("select")["$ref"], list(schema_of()["$defs"]["select"]["properties"])[:3]
    ('#/$defs/select', ['schema', 'file', 'sentence'])
    """
    definitions: dict[str, Any] = {}
    for name, kind in ANSWERS.items():
        definitions[name] = _object(kind, definitions, schema={"const": _version(name)})
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
    return {
        "type": "object",
        "description": kind.__doc__,
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


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
    if origin is list:
        return {"type": "array", "items": _schema(args[0], definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(args[1], definitions)}
    if type(None) in args:
        some = _schema(args[0], definitions)
        return {**some, "type": [some["type"], "null"]} if "type" in some else {"anyOf": [some, {"type": "null"}]}
    names = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return {"type": names[hint]} if hint in names else {}
