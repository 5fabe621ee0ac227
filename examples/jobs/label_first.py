"""What to label first: the accuracy of the nearest labelled row, when only the picks are labelled.

Data: USPS digits, or scikit-learn's; 1000 to choose from and 500 to test on, alone and with 50 images of noise in the pool.
Instead: k-medoids, apricot's facility location, or a random choice. An image of noise that is picked costs a label.
"""

import numpy as np
from _jobs import facility_location, k_medoids, mean_of_draws, print_table, real_data
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from mosaic import MOSAIC, datasets

K = 50


@mean_of_draws
def figures(seed):
    usps = real_data("usps.npz")
    if usps:
        X, y = np.load(usps)["X2000"].reshape(-1, 256) / 2000, np.load(usps)["y"]
    else:
        X, y = load_digits(return_X_y=True)
    pool, X_test, y_pool, y_test = train_test_split(X, y, train_size=1000, test_size=500, random_state=seed, stratify=y)
    noisy = np.vstack([pool, datasets.noise_images(50, pool, random_state=seed)])

    def accuracy(picks):
        picks = picks[picks < 1000]  # nobody can label noise
        return KNeighborsClassifier(1).fit(pool[picks], y_pool[picks]).score(X_test, y_test)

    def random_rows(X, k):
        return np.random.default_rng(seed).choice(len(X), k, replace=False)

    ways = {
        "MOSAIC": lambda X, k: MOSAIC(k).fit(X).representative_indices_,
        "k-medoids": lambda X, k: k_medoids(X, k, seed),
        "facility location": facility_location,
        "random": random_rows,
    }
    lines = {}
    for name, choose in ways.items():
        few, many, among_noise = choose(pool, 20), choose(pool, K), choose(noisy, K)
        lines[name] = None
        if few is not None:
            lines[name] = {
                "20 labels": accuracy(few),
                "50 labels": accuracy(many),
                "50, with noise": accuracy(among_noise),
                "noise picked": int((among_noise >= 1000).sum()),
            }
    return lines


def main():
    print_table(__doc__, figures())


if __name__ == "__main__":
    main()
