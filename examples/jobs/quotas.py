"""Fair quotas by group: four customers from each of six cities, of which one has 3 % of the 2000 rows.

Data: made on the spot, with 10 wrong records among the rows; three draws.
Instead: pandas' groupby(...).sample, and random rows without quotas. Gower's distance is to the nearest pick of the same city.
"""

import numpy as np
import pandas
from _jobs import customers, gower, judge_each, mean_of_draws, print_table

from mosaic import MOSAIC


@mean_of_draws
def figures(seed):
    rng = np.random.default_rng(seed)
    frame = customers(2000, seed).drop(columns="kind")
    wrong = rng.choice(2000, 10, replace=False)
    frame.loc[wrong[:5], "age"] = 999
    frame.loc[wrong[5:], "income"] = -1
    model = MOSAIC(24).fit(frame, groups="city", quotas="equal")
    ways = {
        "MOSAIC": model.representative_indices_,
        "groupby.sample": frame.groupby("city").sample(4, random_state=seed).index.to_numpy(),
        "random": rng.choice(2000, 24, replace=False),
    }
    city = frame["city"].to_numpy()
    compared = frame.drop(columns=["customer_id", "city"]).assign(joined=pandas.to_datetime(frame["joined"]).astype("int64"))
    good = np.setdiff1d(np.arange(2000), wrong)

    def judge(picks):
        distance = gower(compared, picks) + (city[:, None] != city[picks])  # a pick of another city does not count
        of_each = [(city[picks] == one).sum() for one in set(city)]
        return {
            "fewest of a city": min(of_each),
            "most of a city": max(of_each),
            "wrong records": np.isin(picks, wrong).sum(),
            "distance": distance.min(axis=1)[good].clip(max=1).mean(),
        }

    return judge_each(ways, judge)


def main():
    print_table(__doc__, figures())


if __name__ == "__main__":
    main()
