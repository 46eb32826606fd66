"""
Three sets of twelve captions
=============================

One model that says the same thing twelve times, one that finds twelve ways to say it, and twelve captions
of twelve different photographs.
"""

from importlib import resources

import matplotlib.pyplot as plt

import vendimeter as vm

# %%
# The captions come with the package. Similarity is the cosine of bags of n-grams, averaged over one to four
# words, as in the paper.

path = resources.files("vendimeter.cli") / "data" / "captions.csv"
captions = vm.read(str(path), samples="caption", label="set")
scores = vm.score_groups(captions, kernel="ngram")
for label, score in zip(scores.labels, scores):
    print(f"{label:20}{score:6.2f} of {score.n}")

# %%
# The similarity matrices say why. A block of bright cells is one thing said many times.

figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.5), layout="constrained")
for ax, label, score in zip(axes, scores.labels, scores):
    own = [text for text, name in zip(captions.samples, captions.labels) if name == label]
    vm.plots.kernel_matrix(own, "ngram", order="given", limits=(0, 1), ax=ax)
    ax.set_title(f"{label}: {score:.1f}")
    if ax is not axes[-1]:
        ax.images[0].colorbar.remove()  # one scale for all three

# %%
# All 36 captions under other kernels. Single words, whatever their order, make more alike, and so do
# characters; phrases of four words make less alike. Which of them is right depends on what should count as
# the same.

found = vm.bandwidth(
    captions.samples,
    kernels={
        "words": vm.kernels.NGram(1, 1),
        "up to two words": vm.kernels.NGram(1, 2),
        "up to four words": vm.kernels.NGram(1, 4),
        "BLEU": vm.kernels.BLEU(),
        "characters": vm.kernels.NGram(1, 4, tokenizer="characters"),
    },
)
found.plot()
