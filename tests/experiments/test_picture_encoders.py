"""MobileNetV2 as the experiments write it, against that of transformers; and its encoder."""

from __future__ import annotations

import argparse

import numpy as np
import pytest
from PIL import Image
from reruns import script

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def names():
    return script("_pictures")


@pytest.fixture(scope="module")
def network(names):
    """With weights by chance, and the statistics of noise, so that every layer hands on what it sees."""
    torch.manual_seed(0)
    network = names["mobilenet_network"]()
    norms = [part for part in network.modules() if isinstance(part, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1.0
        torch.nn.init.uniform_(norm.weight, 0.5, 1.5)
        torch.nn.init.normal_(norm.bias, 0.3, 0.3)
    with torch.no_grad():
        network.features(torch.randn(8, 3, 64, 64))
    return network.eval()


def test_network_is_that_of_transformers(network):
    assert sum(part.numel() for part in network.parameters()) == 3_504_872
    transformers = pytest.importorskip("transformers")
    config = transformers.MobileNetV2Config(tf_padding=False, layer_norm_eps=1e-5)
    other = transformers.MobileNetV2Model(config).eval()
    weights = network.features.state_dict().values()  # in the same order, under other names
    other.load_state_dict(dict(zip(other.state_dict(), weights, strict=True)))
    batch = torch.randn(3, 3, 96, 65)
    with torch.inference_mode():
        mine, theirs = network.features(batch), other(batch).last_hidden_state
    assert mine.shape == (3, 1280, 3, 3)
    assert mine.std(dim=0).mean() > 0.1  # it depends on the pictures
    torch.testing.assert_close(mine, theirs)


def test_encoder_reads_the_fetched_weights(names, network, tmp_path):
    options = argparse.Namespace(fetched=tmp_path, galleries=tmp_path / "galleries")
    missing = names["common"].Missing
    with pytest.raises(missing, match=r"python experiments/fetch\.py mobilenet_v2 fetches it"):
        names["mobilenet_v2"](options)
    torch.save(network.state_dict(), tmp_path / "mobilenet_v2-b0353104.pth")
    encoder = names["mobilenet_v2"](options)
    picture = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    large = np.asarray(Image.fromarray(picture).resize((224, 224), Image.Resampling.BICUBIC)) / np.float32(
        255
    )
    batch = ((large - np.array([0.485, 0.456, 0.406])) / np.array([0.229, 0.224, 0.225])).astype(np.float32)
    with torch.inference_mode():
        vectors = network.features(torch.from_numpy(batch.transpose(2, 0, 1)[None])).mean((2, 3))
        logits = network.classifier(vectors)
    found = encoder.encode([picture])
    np.testing.assert_allclose(found, vectors, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(encoder.logits(found), logits, rtol=1e-4, atol=1e-4)
