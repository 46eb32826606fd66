"""
Which digit varies most from hand to hand?
==========================================

1,797 scans of handwritten digits, compared pixel by pixel: a score for each class, the classes of lowest
and highest score, and a fair comparison of them.
"""

import numpy as np
from sklearn.datasets import load_digits

import vendimeter as vm

digits = load_digits()
pixels, label = digits.data, digits.target

# %%
# Grey pixels are never negative, so that the cosine of any two scans is high and little is told apart. Less
# the mean scan, it tells what differs between them.

centred = pixels - pixels.mean(axis=0)
d = vm.Diversity(centred, by=label)
d.group_scores().plot()

# %%
# What is behind the numbers: the class of lowest and the one of highest score, each with its most typical
# scans first.

vm.plots.gallery(d, items=digits.images, lowest=1, highest=1, count=60, columns=12)

# %%
# Classes differ a little in size, and a score grows with the number of items. `compare` brings all of them
# to one size first, and says how sure it is of the differences.

compared = d.take(np.isin(label, [0, 1, 5, 8])).compare(reference=0)
print(compared)
compared.plot()
