"""
Too sensitive, too blunt
========================

A kernel that is too sensitive makes every collection look diverse, and one that is too blunt none (the
paper, section 5). Here are two collections that certainly differ: 120 points in three clusters, and 120
points in twelve.
"""

import matplotlib.pyplot as plt
import numpy as np

import vendimeter as vm
from vendimeter.kernels import RBF

rng = np.random.default_rng(4)
angle = 2 * np.pi * np.arange(12) / 12
centres = 10 * np.column_stack([np.cos(angle), np.sin(angle)])
few = np.repeat(centres[::4], 40, axis=0) + 0.1 * rng.standard_normal((120, 2))
many = np.repeat(centres, 10, axis=0) + 0.1 * rng.standard_normal((120, 2))
collections = {"three clusters": few, "twelve clusters": many}

# %%
# The same points under three bandwidths. On the left every point is alike to itself alone, and both
# collections score nearly 120. On the right all points are alike, and both score nearly 1. Only in the
# middle does the score say what we know: three things, and twelve.

scales = {"too sensitive": 0.003, "informative": 1.5, "too blunt": 100.0}
figure, axes = plt.subplots(2, 3, figsize=(8.6, 5.6), layout="constrained")
for row, (name, points) in zip(axes, collections.items()):
    for ax, (verdict, sigma) in zip(row, scales.items()):
        matrix = np.exp(-((points[:, None] - points) ** 2).sum(-1) / (2 * sigma**2))
        ax.imshow(matrix, vmin=0, vmax=1, cmap="viridis")
        ax.set_title(f"{verdict}, σ = {sigma:g}\nscore {vm.score(points, RBF(sigma)):.1f}")
        ax.set(xticks=[], yticks=[])
    row[0].set_ylabel(name)

# %%
# Over all bandwidths: the two curves part where groups are told apart, and meet where the kernel sees all
# or nothing. A plateau, where the score hardly depends on the bandwidth, is what to look for.

sigma = np.geomspace(0.002, 300, 60)
figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for (name, points), colour in zip(collections.items(), vm.plots.PALETTE):
    ax.loglog(sigma, [vm.score(points, RBF(s)) for s in sigma], color=colour, label=name, linewidth=2)
ax.axhline(120, color="0.6", linestyle=":", linewidth=1)
ax.axhline(1, color="0.6", linestyle=":", linewidth=1)
ax.text(300, 108, "all different: 120", color="0.4", ha="right", va="top")
ax.text(0.002, 1.07, "all alike: 1", color="0.4", va="bottom")
ax.set(xlabel="bandwidth σ", ylabel="Vendi Score")
ax.legend(frameon=False)

# %%
# `bandwidth` finds it, shades the range in which the score says something, and gives its reason.

found = vm.bandwidth(many)
print(found)
found.plot()
