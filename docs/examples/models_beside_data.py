"""
Two models beside their data
============================

Are a model's samples as varied as the data it was trained on? Two stand-ins for a model draw handwritten
digits: one that knows all ten, and one that has lost all but three. The
:doc:`tutorial </tutorials/researcher>` goes through this step by step.
"""

import numpy as np
from sklearn.datasets import load_digits

import vendimeter as vm

pixels, label = load_digits(return_X_y=True)
rng = np.random.default_rng(0)


def samples(digits, count):
    """New scans of these digits: each the middle of two, with a little noise."""
    drawn = [rng.choice(np.flatnonzero(label == digit), 2) for digit in rng.choice(digits, count)]
    return np.clip(pixels[drawn].mean(axis=1) + rng.normal(size=(count, 64)), 0, 16)


sets = {
    "real": pixels[:150],
    "all digits": samples(range(10), 150),
    "three digits": samples([1, 4, 7], 150),
}

# %%
# One kernel for all, fitted on the real data; scores at the same size, with intervals of the sampling
# error and a test of each difference from the data.

kernel = vm.bandwidth(sets["real"]).kernel
d = vm.Diversity.of(sets, kernel)
compared = d.compare(reference="real")
print(compared)
compared.plot()

# %%
# What is the model of three digits missing? Modes of its samples and the data together, with the scans at
# both ends of each.

both = d.take(np.r_[0:150, 300:450])
both.modes(k=4).plot_exemplars(items=both.samples.reshape(-1, 8, 8))
