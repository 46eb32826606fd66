"""
Two woods and a plantation
==========================

Sites × species over one matrix of similarities: which site is more diverse depends on how much rare species
count, the order q, and on whether species that are alike count as different.
"""

import matplotlib.pyplot as plt
import numpy as np

import vendimeter as vm
from vendimeter.kernels import FromDistances

species = ["pine", "spruce", "fir", "oak", "beech", "birch", "hazel", "holly"]
conifers, broadleaves = range(3), range(3, 8)
distance = np.full((8, 8), 4.0)  # a made-up tree of life: 1 within a family, 4 between the two
for part in (conifers, broadleaves):
    distance[np.ix_(part, part)] = 1.0
np.fill_diagonal(distance, 0.0)

abundance = {
    "mixed wood": [8, 6, 5, 20, 18, 9, 4, 3],
    "oak wood": [1, 0, 0, 70, 6, 5, 10, 8],
    "plantation": [40, 35, 25, 0, 0, 0, 0, 0],
}

# %%
# Without similarities these are the Hill numbers of ecology. With them, three conifers are less than three
# different things. The oak wood has more species than the plantation, and one that outnumbers all others:
# it leads at small q and trails at large q.

orders = np.linspace(0.05, 4, 60)
figure, axes = plt.subplots(1, 2, figsize=(9.2, 3.7), layout="constrained", sharey=True)
for colour, (site, counts) in zip(vm.plots.PALETTE, abundance.items()):
    p = np.array(counts) / np.sum(counts)
    met = np.flatnonzero(p)
    naive = [vm.metrics.hill(counts, q=q) for q in orders]
    similar = vm.profile(distance[np.ix_(met, met)], FromDistances(1.0), weights=p[met], q=list(orders))
    axes[0].plot(orders, naive, color=colour, label=site, linewidth=2)
    axes[1].plot(orders, list(similar.values()), color=colour, label=site, linewidth=2)
axes[0].set(title="every species is different", xlabel="order q", ylabel="effective number of species")
axes[1].set(title="similar species count less", xlabel="order q")
axes[0].legend(frameon=False)
