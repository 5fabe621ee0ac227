"""What the help of every command says around its options."""

from __future__ import annotations

ABOUT = """\
Which few rows stand for the rest, which do not belong, and how good that answer is.

FILE is a table (csv, tsv, parquet, feather, jsonl), an array (npy, npz, mtx, zarr, h5ad) or a folder or zip of \
images. Columns of numbers are compared; all other columns, ids among them, come along to the output."""

EXIT_CODES = """\
exit codes:
  0    done
  1    a fault of ours; --debug shows where
  2    wrong usage, or a setting that is refused
  3    the input cannot be read or used
  4    an output cannot be written (it exists and --force is not given, no folder, disk full)
  5    more memory is needed than --memory-budget
  6    a library is missing
  130  interrupted; no half-written file is left"""

#: For each command: one line in the list of commands, what it does, examples that run in a folder with points.csv and points.npy.
COMMANDS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "select": (
        "choose rows that stand for the rest",
        "Choose the rows of FILE that stand for the rest, outliers set aside.\n\n"
        "The picks go to -o; without it, to a terminal as a short answer, into a pipe as CSV. They keep all columns of FILE\n"
        "and get mosaic_rank, mosaic_row, mosaic_stands_for, mosaic_effective_count and mosaic_reason.",
        (
            "mosaic select points.csv -k 10 -o picks.csv --report report.html",
            "mosaic select points.csv --coverage 0.9 --must-include p7 --group kind --quotas equal",
            "mosaic select points.npy -k 0.05 --labels labels.csv --json",
        ),
    ),
    "outliers": (
        "find rows that few others look like",
        "Find the rows of FILE that few others look like, oddest first.\n\n"
        "They keep all columns of FILE and get mosaic_row, mosaic_score, mosaic_effective_count, mosaic_is_outlier and\n"
        "mosaic_reason. The score is the log of the effective count: low is odd.",
        (
            "mosaic outliers points.csv -o outliers.csv",
            "mosaic outliers points.csv --contamination 0.02 --all",
            "mosaic outliers points.npy --json",
        ),
    ),
    "path": (
        "how many to take: the curve of what 1, 2, 3, … rows cover",
        "How much of FILE 1, 2, 3, … representatives cover, which they are, and from where more of them add little.",
        (
            "mosaic path points.csv",
            "mosaic path points.csv --max-representatives 30 -o curve.csv",
        ),
    ),
    "estimate": (
        "what select would cost",
        "Which way select would take with these options, and the memory and time it would need, without doing it.",
        (
            "mosaic estimate points.npy",
            "mosaic estimate points.csv -k 20 --memory-budget 500MB --json",
        ),
    ),
    "report": (
        "select, and show the answer as one HTML page",
        "Select, and write one self-contained HTML page: the map of the data, the picks, the outliers, the coverage curve\n"
        "and the settings. It needs no network and no server.",
        (
            "mosaic report points.csv -k 10",
            "mosaic report points.npy -o points.html --title 'Ten points' -k 10 --force",
        ),
    ),
    "explain": (
        "why a row was chosen, rejected or left out",
        "Select, and say of each named row why it was chosen, rejected or left out. Without a name: what was decided about\n"
        "the data, and why. Rows go by their id or, where there are no ids, by their number from 0.",
        (
            "mosaic explain points.csv p7 p11 -k 10",
            "mosaic explain points.csv --row 0 --row 399",
            "mosaic explain points.npy --json",
        ),
    ),
    "demo": (
        "try it: handwritten digits with noise among them",
        "Handwritten digits with images of noise among them: twenty that stand for the rest, the noise set aside, and\n"
        "FOLDER/report.html and FOLDER/picks.csv to look at.",
        ("mosaic demo", "mosaic demo somewhere --json"),
    ),
    "completion": (
        "print a completion script for a shell",
        "Print a script that completes commands, options and their values, for bash, zsh or tcsh.",
        ("mosaic completion bash", "mosaic completion zsh"),
    ),
    "schema": (
        "print the JSON Schema of what --json gives",
        "Print the JSON Schema (draft 2020-12) of what --json gives: of one command, or of all.",
        ("mosaic schema", "mosaic schema select"),
    ),
}


def epilog(command: str) -> str:
    """Examples, and where exit codes are."""
    examples = "\n".join(f"  {line}" for line in COMMANDS[command][2])
    return f"examples:\n{examples}\n\nExit codes are listed by mosaic --help."
