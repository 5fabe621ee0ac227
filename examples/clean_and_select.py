"""Clean and select: from a raw table to a few rows that can be trusted.

What you learn here:

- a table is used as it is: ids and other text are not compared, units do not matter, and all columns come back;
- exact and near copies are not chosen twice;
- rows of noise are set aside, and the report says why;
- as many picks as a coverage needs (``coverage``), or a number for each site (``groups``, ``quotas``).

The table is made here: readings of machines at four sites, one of them small, with 50 exact copies, 50 that differ in the
fifth digit, and 20 rows of noise. It needs pandas; a Polars frame or an Arrow table works as well.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from _shared import out_folder, stands_for, write_answer

from mosaic import MOSAIC, SelectionWarning

SITES = {"north": 420, "south": 170, "east": 80, "west": 30}
MEASURED = ["speed", "current", "temperature", "vibration"]

folder = out_folder("clean_and_select", __doc__)


def readings(rng: np.random.Generator) -> pd.DataFrame:
    """Readings of machines at different loads and sites; the column "truth" is for checking only."""
    number = np.repeat(np.arange(len(SITES)), list(SITES.values()))
    load = rng.beta(1.5, 1.5, len(number))
    exact = {
        "speed": 600 + 900 * load,
        "current": 5 + 20 * load**2 + 2.5 * number,
        "temperature": 30 + 40 * load**1.5 + 5 * (number % 2),
        "vibration": 1 + 3 * np.sin(np.pi * load) + 0.6 * number,
    }
    errors = {"speed": 15.0, "current": 0.4, "temperature": 0.8, "vibration": 0.12}
    honest = pd.DataFrame({name: values + rng.normal(0, errors[name], len(number)) for name, values in exact.items()})
    honest = honest.assign(site=np.repeat(list(SITES), list(SITES.values())), truth="reading")
    copies = honest.sample(50, random_state=1).assign(truth="copy")
    nearly = honest.sample(50, random_state=2).assign(truth="near copy")
    nearly[MEASURED] *= 1 + 1e-5 * rng.normal(size=nearly[MEASURED].shape)
    noise = honest.sample(20, random_state=3).assign(truth="noise")
    low, high = honest[MEASURED].min(), honest[MEASURED].max()
    noise[MEASURED] = rng.uniform(low - (high - low) / 2, high + (high - low) / 2, noise[MEASURED].shape)
    frame = pd.concat([honest, copies, nearly, noise]).sample(frac=1, random_state=4).reset_index(drop=True)
    frame.insert(0, "reading", [f"R{number:04d}" for number in range(len(frame))])
    return frame


# 1. The table.
frame = readings(np.random.default_rng(0))
seen = frame.drop(columns="truth")
print(f"{len(frame)} rows: {frame['truth'].value_counts().to_dict()}; columns {', '.join(seen.columns)}.\n")

# 2. Twenty-four rows. Columns of text are not compared, and come back with the picks.
with warnings.catch_warnings(record=True) as told:  # small groups are kept, and told of
    warnings.simplefilter("always")
    model = MOSAIC(24).fit(seen)
warnings.simplefilter("ignore", SelectionWarning)  # once is enough
picks = model.select(frame)
print(*[f"A warning: {warning.message}" for warning in told], sep="\n")
print(f"Twenty-four of them, {', '.join(picks['reading'][:5])} … first, with all columns: {list(picks.columns)}.")
print(f"Noise among the picks: {(picks['truth'] == 'noise').sum()}.")
flagged = frame.loc[model.is_outlier_, "truth"].value_counts().to_dict()
print(f"Set aside as outliers: {flagged}, of 20 rows of noise.")
print(f"  {model.explain(int(np.flatnonzero(model.is_outlier_)[0]))}")

# 3. No copies: how far apart the two closest picks are, in standard deviations of each column.
scaled = (picks[MEASURED] / frame.loc[~model.is_outlier_, MEASURED].std()).to_numpy()
gaps = np.linalg.norm(scaled[:, None] - scaled[None], axis=2)[~np.eye(len(scaled), dtype=bool)]
print(f"Copies among the picks: {picks[MEASURED].duplicated().sum()}; the two closest are {gaps.min():.2f} deviations apart.\n")

# 4. As many as it takes to bring rows five times nearer than the best single row is.
enough = MOSAIC(coverage=0.8).fit(seen)
print(f"With coverage=0.8 there are {enough.n_representatives_}; the smallest stands for {stands_for(enough).min()} rows.")

# 5. Six for each site, including the small one, which has few picks otherwise.
print(f"Without being asked, sites have {picks['site'].value_counts().to_dict()} picks.")
fair = MOSAIC(24).fit(seen, groups=frame["site"], quotas="equal")
chosen = fair.select(frame)
print(f"With equal quotas they have {chosen['site'].value_counts().to_dict()}; noise: {(chosen['truth'] == 'noise').sum()}.")

write_answer(fair, folder, "Readings to keep", names=frame["reading"], columns=seen[["site", *MEASURED]], groups="site")
