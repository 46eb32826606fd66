"""
Many answers to every prompt
============================

Three models answer the same sixty prompts eight times each. How many different answers does a model give,
and is the difference between two models more than chance?
"""

import matplotlib.pyplot as plt
import numpy as np

import vendimeter as vm

rng = np.random.default_rng(0)
words = ["amber", "brisk", "cedar", "dusky", "ember", "fjord", "grove", "heron", "inlet", "jolly", "kelp"]


def answer(temperature):
    """Six words around a prompt's favourite ones; the hotter, the less so."""
    favour = np.exp(-np.arange(len(words)) / temperature)
    return " ".join(rng.choice(words, size=6, p=favour / favour.sum()))


temperatures = {"cool": 1.0, "warm": 2.0, "hot": 4.0}
answers = {
    (model, prompt): [answer(t * difficulty) for _ in range(8)]
    for prompt, difficulty in enumerate(rng.uniform(0.6, 1.6, size=60))
    for model, t in temperatures.items()
}
groups = vm.score_groups(answers, kernel=vm.kernels.NGram(1, 2))

# %%
# Every prompt is answered by every model, so that models are compared prompt by prompt: the differences
# between prompts, which are large, drop out.

means = groups.mean(by=lambda group: group[0], unit=lambda group: group[1])
for one in means:
    print(f"{one.label:6}{one.mean:6.2f} ± {one.standard_error:.2f} of 8 answers")
print(means)

# %%
# A line is a prompt.

table = np.array([[groups[model, prompt] for model in temperatures] for prompt in range(60)])
figure, ax = plt.subplots(figsize=(5.6, 3.8), layout="constrained")
ax.plot(table.T, color="0.75", linewidth=0.8)
ax.errorbar(
    range(3), [one.mean for one in means], [2 * one.standard_error for one in means],
    color=vm.plots.PALETTE[0], marker="o", linewidth=2, capsize=4,
)  # fmt: skip
ax.set_xticks(range(3), list(temperatures))
ax.set(ylabel="effectively different answers, of 8", xlabel="model")
