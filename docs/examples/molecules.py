"""
Families of molecules
=====================

Alcohols, acids and aromatic compounds, compared by their Morgan fingerprints: how many different molecules
are these, which families do they fall into, and which six stand for all?
"""

import matplotlib.pyplot as plt

import vendimeter as vm

alcohols = ["CO", "CCO", "CCCO", "CCCCO", "CCCCCO", "CCCCCCO", "CC(C)O", "CC(C)CO", "OCCO", "OCCCO"]
acids = ["CC(=O)O", "CCC(=O)O", "CCCC(=O)O", "CCCCC(=O)O", "CC(C)C(=O)O", "OC(=O)CC(=O)O"]
aromatic = [
    "c1ccccc1", "Cc1ccccc1", "CCc1ccccc1", "Oc1ccccc1", "Nc1ccccc1", "Clc1ccccc1", "Brc1ccccc1",
    "OC(=O)c1ccccc1", "COc1ccccc1", "c1ccc2ccccc2c1",
]  # fmt: skip
molecules = alcohols + acids + aromatic
family = ["alcohol"] * len(alcohols) + ["acid"] * len(acids) + ["aromatic"] * len(aromatic)

d = vm.Diversity(molecules, "morgan", by=family)
print(d.score().summary())

# %%
# Family by family: the blocks are what a family has in common, and what lies between them is what two
# families share.

vm.plots.kernel_matrix(d, order="labels")

# %%
# Six of them that keep as much of the diversity as six can.

chosen = d.select(6)
print(chosen)
figure, axes = plt.subplots(1, 6, figsize=(9.6, 1.8), layout="constrained")
for ax, i in zip(axes, chosen.indices):
    vm.plots.draw(ax, molecules[i], kind="molecules")
    ax.set_title(family[i], fontsize=9)
