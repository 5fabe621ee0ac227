"""Faces: twelve frames that stand for a film, with images of noise among them.

What you learn here:

- an image is a row of pixels, and no settings are needed;
- images of noise are not chosen, and you need not know how many there are;
- another number of representatives costs next to nothing after the fit;
- the model assigns frames that came later to a representative, and recognises noise that came later.

The film is Frey Face, 1965 frames of one man's face, where ``frey_faces.npz`` is in the folder of real data. Otherwise
scikit-learn's digits are used, which need no download.
"""

from __future__ import annotations

import numpy as np
from _shared import out_folder, real_data, stands_for, write_answer
from sklearn.datasets import load_digits

from mosaic import MOSAIC, datasets

folder = out_folder("faces", __doc__)

# 1. The pictures. Every fifth is kept back, as a picture that came later.
film = real_data("frey_faces.npz")
if film is not None:
    print("Data: Frey Face, frames of a film of one face.")
    pictures = np.load(film)["X"].astype(float)
else:
    print("Data: scikit-learn's digits, in place of Frey Face.")
    pictures = load_digits().images
later = np.arange(len(pictures)) % 5 == 4
old, new = pictures[~later], pictures[later]

# 2. Add forty images of noise. MOSAIC is not told which they are; the mask is for checking.
images = np.concatenate([old, datasets.noise_images(40, old)])
is_noise = np.arange(len(images)) >= len(old)
X = images.reshape(len(images), -1)
print(f"{len(old)} pictures of {old.shape[1]}×{old.shape[2]} pixels and {is_noise.sum()} images of noise.\n")

# 3. Choose twelve.
model = MOSAIC(12).fit(X)
picks = model.representative_indices_
print(f"Chosen, best first: {', '.join(map(str, picks))}.")
print(f"They stand for {', '.join(map(str, stands_for(model)))} pictures, with a coverage of {model.coverage_:.0%}.")
print(f"Noise among the chosen: {is_noise[picks].sum()}.")
found, wrong = model.is_outlier_ & is_noise, model.is_outlier_ & ~is_noise
print(f"Outliers: {found.sum()} of {is_noise.sum()} images of noise, and {wrong.sum()} of {len(old)} pictures.")
print(model.certificate_)

# 4. Pictures and noise that came later.
print(f"\nOf {len(new)} new pictures the twelve cover {model.score(new.reshape(len(new), -1)):.0%}.")
noise = datasets.noise_images(20, old, random_state=1)
print(f"Of {len(noise)} new images of noise, {(model.predict(noise.reshape(20, -1)) == -1).sum()} are recognised.")

write_answer(model, folder, "Frames that stand for a film", images=images)

# 5. Another number, without a new fit.
few = model.rethreshold(n_representatives=6)
print(f"\nSix would have a coverage of {few.coverage_:.0%}: {', '.join(map(str, few.representative_indices_))}.")
