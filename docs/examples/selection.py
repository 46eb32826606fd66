"""
Thirty that keep the diversity
==============================

Two thirds of these points lie in one heap. Thirty drawn at random are two thirds heap, too; thirty that
were chosen are not.
"""

import matplotlib.pyplot as plt
import numpy as np

import vendimeter as vm
from vendimeter.kernels import RBF

rng = np.random.default_rng(1)
heap = 0.08 * rng.standard_normal((400, 2)) + [0.3, 0.6]
rest = rng.random((200, 2))
points = np.concatenate([heap, rest])
d = vm.Diversity(points, RBF(0.12))

methods = {"random": "random", "representative": "facility", "most different": "vendi"}
figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.5), layout="constrained")
for ax, (name, method) in zip(axes, methods.items()):
    chosen = d.select(30, method=method)
    ax.plot(*points.T, ".", color="0.8", markersize=3)
    ax.plot(*points[chosen.indices].T, "o", color=vm.plots.PALETTE[0], markersize=5)
    ax.set_title(f"{name}: score {chosen.score:.1f}")
    ax.set(xticks=[], yticks=[], aspect="equal")

# %%
# The score of the part against its size. A part may well score higher than the whole, in which the heap
# weighs two thirds.

chosen = d.select(30)
print(chosen)
chosen.plot()

# %%
# A higher score does not make a better training set: what differs most from everything else is often
# broken. Look at what was chosen, and take ``method="facility"`` for representatives.
