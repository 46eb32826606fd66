"""
Would more samples change it?
=============================

A score grows with the number of samples until they cover what there is. The curve of random subsets says
whether they do; where they do, the score of the whole population can be told, with an interval.
"""

import matplotlib.pyplot as plt
import numpy as np

import vendimeter as vm

rng = np.random.default_rng(2)


def draw(count, modes, spread=0.05):
    """Samples from a population of so many equally common modes."""
    centres = np.eye(modes, 400)
    return centres[rng.integers(modes, size=count)] + spread * rng.standard_normal((count, 400)) / 20


# %%
# Both collections have 500 samples. One comes from a population of 8 modes, which 500 samples cover many
# times over; the other from one of 400, of which they meet only some.

curves = {"8 modes": vm.rarefy(draw(500, 8)), "400 modes": vm.rarefy(draw(500, 400))}
figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.6), layout="constrained")
for ax, (name, curve) in zip(axes, curves.items()):
    curve.plot(ax=ax)
    ax.set_title(f"500 samples of {name}", loc="left")

# %%
# The first has converged, and its population's score has an interval. The second has not, and the interval
# is refused with the reason: no number is better than a wrong one.

for name, curve in curves.items():
    print(f"{name}: {curve}\n")
