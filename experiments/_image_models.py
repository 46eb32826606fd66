"""The table of image models as it is printed in the paper (and its appendix, for VS by pixels)."""

from __future__ import annotations

from typing import Any

COLUMNS = {"IS": 1, "FID": -1, "precision": 1, "recall": 1, "VS_I": 1, "VS_P": 1}  # 1: higher is better
PRINTED = """
CIFAR-10       Original   -     -      -    -    19.50 3.52
CIFAR-10       VDVAE      5.82  40.05  0.63 0.35 12.87 3.34
CIFAR-10       DenseFlow  6.01  34.54  0.62 0.38 13.55 2.94
CIFAR-10       IDDPM      9.24  4.39   0.66 0.60 16.86 3.27
ImageNet-64    Original   -     -      -    -    43.93 4.43
ImageNet-64    VDVAE      9.68  57.57  0.47 0.37 18.04 4.24
ImageNet-64    DenseFlow  5.62  102.90 0.36 0.17 12.71 3.51
ImageNet-64    IDDPM      15.59 19.24  0.59 0.58 24.28 4.57
LSUN-Bedroom   Original   -     -      -    -    8.99  3.10
LSUN-Bedroom   StyleGAN   2.55  2.35   0.59 0.48 8.76  3.09
LSUN-Bedroom   ADM        2.38  1.90   0.66 0.51 7.97  3.27
LSUN-Bedroom   RQ-VT      2.56  3.16   0.60 0.50 8.48  3.67
LSUN-Cat       Original   -     -      -    -    15.12 4.58
LSUN-Cat       StyleGAN2  4.84  7.25   0.58 0.43 13.55 4.53
LSUN-Cat       ADM        5.19  5.57   0.63 0.52 13.09 4.81
LSUN-Cat       RQ-VT      5.76  10.69  0.53 0.48 14.91 5.83
"""
LOW, LSUN = ["CIFAR-10", "ImageNet-64"], ["LSUN-Cat", "LSUN-Bedroom"]
RANKED = ["ImageNet-64", "CIFAR-10", "LSUN-Cat", "LSUN-Bedroom"]  # by VS_I, says the paper
Row = dict[str, Any]


def printed() -> tuple[dict[str, Row], dict[str, dict[str, Row]]]:
    """The paper's table: originals, and models, by data set."""
    originals: dict[str, Row] = {}
    models: dict[str, dict[str, Row]] = {}
    for line in PRINTED.split("\n")[1:-1]:
        data, model, *numbers = line.split()
        row = {name: float(x) for name, x in zip(COLUMNS, numbers, strict=True) if x != "-"}
        if model == "Original":
            originals[data] = row
        else:
            models.setdefault(data, {})[model] = row
    return originals, models
