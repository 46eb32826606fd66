"""
Noise is very diverse
=====================

A score measures variety and says nothing of quality: random pixels score far higher than handwriting. So it
belongs beside a measure that compares with the real thing.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import vendimeter as vm

digits = load_digits()
rng = np.random.default_rng(0)
real = digits.data[:600]
others = digits.data[600:1200]
# Two scans laid over each other; and eight scans, over and over, each time a little different.
blurred = 0.5 * others + 0.5 * others[rng.permutation(600)]
stuck = others[rng.integers(8, size=600)] + rng.normal(scale=0.5, size=(600, 64))
noise = rng.uniform(0, 16, size=(600, 64))
sets = {"real": real, "other scans": others, "overlaid": blurred, "stuck": stuck, "noise": noise}

# %%
figure, axes = plt.subplots(5, 10, figsize=(6.4, 3.6), layout="constrained")
for row, (name, rows) in zip(axes, sets.items()):
    for ax, picture in zip(row, rows):
        ax.imshow(picture.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        ax.set(xticks=[], yticks=[])
    row[0].set_ylabel(name, rotation=0, ha="right", va="center")

# %%
# One kernel for all, fitted on the real scans. The Vendi Score (VS) alone would prefer noise; precision,
# the share of samples that look real, is zero for it. A collection that is stuck has precision and no
# diversity. Only together do they tell.

kernel = vm.bandwidth(real).kernel
table = vm.metrics.table(
    sets,
    kernel,
    reference="real",
    metrics=["frechet_distance", "precision_recall", "density_coverage", "vendi_score"],
)
table
