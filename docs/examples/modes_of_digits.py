"""
What are the different things?
==============================

The score counts; the modes, which are the eigenvectors of the similarity matrix, say what is counted.
"""

import numpy as np
from sklearn.datasets import load_digits

import vendimeter as vm

digits = load_digits()
chosen = np.flatnonzero(digits.target < 6)
pixels, label = digits.data[chosen], digits.target[chosen]
centred = pixels - pixels.mean(axis=0)

modes = vm.modes(centred, by=label, k=5)
print(modes)

# %%
# At the two ends of a mode lie the scans that it tells apart: one mode, one kind of difference.

modes.plot_exemplars(items=digits.images[chosen])

# %%
# Scans in the order of the modes: what is alike comes to lie together, without any label being used.

modes.plot_matrix()
