"""A file larger than the memory budget: 20 of 1,000,000 rows; the peak memory of the process and the seconds it takes.

Data: a Parquet file of 1,000,000 × 20 numbers around 20 centres (160 MB), made on the spot; the budget is 120 MB.
Instead: pandas and MiniBatchKMeans; or batches of pyarrow and partial_fit, and a second pass for the rows nearest to the means.
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet as pq
from _jobs import print_table
from sklearn.metrics import pairwise_distances_argmin_min

PANDAS = """
import sys, numpy, pandas
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import pairwise_distances_argmin
X = pandas.read_parquet(sys.argv[1]).to_numpy()
means = MiniBatchKMeans(20, batch_size=4096, n_init=3, random_state=0).fit(X).cluster_centers_
numpy.savetxt(sys.argv[2], X[pairwise_distances_argmin(means, X)], delimiter=",", header="header")
"""
BATCHES = """
import sys, numpy, pyarrow.parquet
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import pairwise_distances_argmin_min
def batches():
    for batch in pyarrow.parquet.ParquetFile(sys.argv[1]).iter_batches(20_000):
        yield numpy.column_stack([column.to_numpy() for column in batch.columns])
model = MiniBatchKMeans(20, random_state=0)
for X in batches():
    model.partial_fit(X)
best, rows = numpy.full(20, numpy.inf), numpy.empty((20, 20))
for X in batches():
    place, distance = pairwise_distances_argmin_min(model.cluster_centers_, X)
    nearer = distance < best
    best[nearer], rows[nearer] = distance[nearer], X[place[nearer]]
numpy.savetxt(sys.argv[2], rows, delimiter=",", header="header")
"""


def run(arguments):
    """Run Python with these arguments: its peak memory in MiB (on Linux), and seconds."""
    start, peak = time.perf_counter(), np.nan
    process = subprocess.Popen([sys.executable, *map(str, arguments)])
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        found = re.search(r"VmHWM:\s+(\d+)", status.read_text() if status.exists() else "")
        peak = float(found[1]) / 1024 if found else peak
        time.sleep(0.01)
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode}")
    return {"peak MiB": peak, "seconds": time.perf_counter() - start}


def figures():
    rng = np.random.default_rng(0)
    centres = rng.normal(0, 4, (20, 20))
    with tempfile.TemporaryDirectory() as name:
        path, picks = Path(name) / "rows.parquet", Path(name) / "picks.csv"
        schema = pyarrow.schema([(f"x{i}", pyarrow.float64()) for i in range(20)])
        with pq.ParquetWriter(path, schema) as file:
            for _ in range(10):
                X = centres[rng.choice(20, 100_000)] + rng.normal(size=(100_000, 20))
                file.write_table(pyarrow.table(list(X.T), schema=schema))
        ways = {
            "MOSAIC": ["-m", "mosaic", "select", path, "-k", 20, "--memory-budget", "120MB", "-o", picks, "--force", "--quiet"],
            "pandas, MiniBatchKMeans": ["-c", PANDAS, path, picks],
            "pyarrow, partial_fit": ["-c", BATCHES, path, picks],
        }
        only_imports = run(["-c", "import sklearn.cluster, pandas, pyarrow.parquet"])
        lines = {"imports alone": only_imports | {"mean distance": np.nan}}
        for way, arguments in ways.items():
            used = run(arguments)
            chosen = np.genfromtxt(picks, delimiter=",", skip_header=1, usecols=range(20))
            lines[way] = used | {"mean distance": pairwise_distances_argmin_min(X, chosen)[1].mean()}  # of the last 100,000 rows
    return lines


def main():
    print_table(__doc__, figures())


if __name__ == "__main__":
    main()
