"""Lines as the runner of the experiments writes them, and rows of the tables that its pages make of them."""

from experiments.items import VARIANTS

TIER = dict.fromkeys(("MOSAIC", "MOSAIC (paper)", *VARIANTS, "paper's ADMM", "CVX reference"), "ours")
TIER |= dict.fromkeys(("SMRS", "DS3", "SSM", "K-medoids", "L1-KPCA", "TED"), "paper")
TIER |= dict.fromkeys(("M-kmeans", "FDR (surrogate)", "RML (surrogate)"), "surrogate")


def line(item, method, dataset, seed=0, ratio=0.0, k=None, *, kind=None, n=300, task="select", more=None, **numbers):
    """One line: numbers of the judge by name, or cannot=, missing= instead; ``more`` is kept beside them."""
    job = {"item": item, "task": task, "method": method, "dataset": dataset, "contamination": kind, "ratio": ratio}
    job |= {"n": n, "k": k, "seed": seed, "tier": TIER.get(method, "peer"), "settings": {}, **(more or {})}
    if "cannot" in numbers or "missing" in numbers:
        return {**job, **numbers}
    return {**job, "verdict": numbers, "note": "", "versions": {"numpy": "2.0"}}


def row_of(table, method):
    """The cells of a method's row."""
    (found,) = (text for text in table.splitlines() if text.startswith(f"| {method} |"))
    return [cell.strip() for cell in found.strip("|").split("|")][1:]
