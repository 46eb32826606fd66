"""Generators of Stacked MNIST, trained: a DCGAN, and the same with a bound on its entropy in the loss.

Every five epochs 10,000 samples are drawn, and what a digit classifier says of each of their three channels is kept.
`stacked_mnist.py` computes the table from these probabilities, without a GPU; here nothing is scored.

    python stacked_mnist_train.py classifier --mnist FOLDER --out FOLDER
    python stacked_mnist_train.py dcgan --mnist FOLDER --out FOLDER
    python stacked_mnist_train.py entropy --mnist FOLDER --out FOLDER

MNIST is read from its four files (train-images-idx3-ubyte and so on, gzipped or not). Needs PyTorch, and a GPU to be
done in minutes.

The classifier is a small convolutional network, trained on single digits. A stacked image is three digits of the
training set drawn at random, one a channel, rescaled to 32×32; there are 60,000 of them, as in the paper.

- DCGAN (Radford et al. 2016) as in the paper's two models: 64 features in the first layer, four layers, Adam with rate
  2e-4 and β₁ = 0.5, the non-saturating loss; batches of 128.
- Entropy-regularised: a third network guesses the noise from the image, and its squared error is part of the
  generator's loss. That bounds the entropy of what is generated from below (Barber and Agakov 2003); it is not the
  estimator of PresGAN, which the paper's row has.
"""

from __future__ import annotations

import argparse
import gzip
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

IMAGES, SAMPLES = 60_000, 10_000
SIDE, NOISE, WIDTH = 32, 100, 64
BATCH, RATE, BETAS = 128, 2e-4, (0.5, 0.999)
DIGITS = 10


# ------------------------------------------------------------------------------------------------------------- data


def read_idx(folder: Path, name: str) -> np.ndarray:
    """One of the files in which MNIST is published."""
    path = next((path for path in (folder / name, folder / f"{name}.gz") if path.exists()), None)
    if path is None:
        raise SystemExit(f"{folder / name} is not there; expected the four files of MNIST, gzipped or not.")
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    axes = data[3]
    shape = np.frombuffer(data, ">i4", axes, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)


def digits(folder: Path, part: str, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Single digits, rescaled to 32×32, from −1 to 1, and their labels."""
    images = torch.tensor(read_idx(folder, f"{part}-images-idx3-ubyte"), dtype=torch.float32)[:, None]
    scaled = F.interpolate(images, (SIDE, SIDE), mode="bilinear", align_corners=False)
    labels = torch.tensor(read_idx(folder, f"{part}-labels-idx1-ubyte"), dtype=torch.long)
    return (scaled / 127.5 - 1).to(device), labels.to(device)


def stacked(single: torch.Tensor, seed: int, count: int = IMAGES) -> torch.Tensor:
    """Three random digits an image, one a channel."""
    rng = torch.Generator().manual_seed(seed)
    chosen = torch.randint(len(single), (count, 3), generator=rng).to(single.device)
    return single[chosen.T, 0].transpose(0, 1).contiguous()


# ------------------------------------------------------------------------------------------------------- classifier


def classifier() -> nn.Sequential:
    """A digit classifier; 99.5 % of the test digits or so."""
    layers: list[nn.Module] = []
    for i, o in ((1, 32), (32, 64), (64, 128)):
        layers += [nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Dropout(0.3), nn.Linear(128 * 16, DIGITS))


def train_classifier(options: argparse.Namespace) -> None:
    torch.manual_seed(options.seed)
    images, labels = digits(options.mnist, "train", options.device)
    tests, truth = digits(options.mnist, "t10k", options.device)
    model = classifier().to(options.device)
    steps = -(-len(images) // 256) * options.epochs
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, steps)
    for epoch in range(options.epochs):
        model.train()
        for chosen in torch.randperm(len(images), device=options.device).split(256):
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(model(moved(images[chosen])), labels[chosen]).backward()
            optimizer.step()
            schedule.step()
        model.eval()
        with torch.no_grad():
            right = sum(
                int((model(x).argmax(1) == y).sum())
                for x, y in zip(tests.split(1000), truth.split(1000), strict=True)
            )
        print(f"classifier, epoch {epoch + 1}: {right / len(tests):.2%} of the test digits", flush=True)
    torch.save({"state": model.state_dict(), "accuracy": right / len(tests)}, options.out / "classifier.pt")
    originals = stacked(images, options.seed + 1, SAMPLES)
    probabilities = judged(model, originals)
    np.savez_compressed(
        options.out / "original.npz", probabilities=probabilities, accuracy=right / len(tests)
    )


def moved(images: torch.Tensor) -> torch.Tensor:
    """Every image shifted by up to two pixels."""
    padded = F.pad(images, (2, 2, 2, 2), value=-1.0)
    shifts = torch.randint(0, 5, (len(images), 2), device=images.device)
    rows = torch.arange(SIDE, device=images.device)
    picked = padded[torch.arange(len(images), device=images.device)[:, None, None], 0,
                    (shifts[:, :1] + rows)[:, :, None], (shifts[:, 1:] + rows)[:, None, :]]  # fmt: skip
    return picked[:, None]


@torch.no_grad()
def judged(model: nn.Module, images: torch.Tensor) -> np.ndarray:
    """What the classifier says of each channel: (images, 3, 10), as half-precision numbers."""
    found = []
    for batch in images.split(2000):
        channels = batch.reshape(-1, 1, SIDE, SIDE)
        found.append(F.softmax(model(channels).double(), dim=1).reshape(len(batch), 3, DIGITS).cpu())
    return torch.cat(found).numpy().astype(np.float16)


# ------------------------------------------------------------------------------------------------------- generators


class Generator(nn.Module):
    """Noise to an image."""

    def __init__(self) -> None:
        super().__init__()
        widths = [WIDTH * 4, WIDTH * 2, WIDTH]
        layers: list[nn.Module] = [nn.ConvTranspose2d(NOISE, widths[0], 4, 1, 0, bias=False)]
        for i, o in zip(widths, [*widths[1:], None], strict=True):
            layers += [
                nn.BatchNorm2d(i),
                nn.ReLU(True),
                nn.ConvTranspose2d(i, o or 3, 4, 2, 1, bias=o is None),
            ]
        self.layers = nn.Sequential(*layers, nn.Tanh())

    def forward(self, noise: torch.Tensor) -> torch.Tensor:
        """Images, from −1 to 1."""
        return self.layers(noise[:, :, None, None])


def trunk() -> nn.Sequential:
    """An image to 256 features at 4×4 places."""
    widths = [3, WIDTH, WIDTH * 2, WIDTH * 4]
    layers: list[nn.Module] = []
    for place, (i, o) in enumerate(pairwise(widths)):
        layers += [nn.Conv2d(i, o, 4, 2, 1, bias=place == 0)]
        layers += [nn.BatchNorm2d(o)] if place else []
        layers += [nn.LeakyReLU(0.2, True)]
    return nn.Sequential(*layers)


def started(module: nn.Module) -> None:
    """Weights as DCGAN begins with."""
    if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
        nn.init.normal_(module.weight, 0.0, 0.02)
    elif isinstance(module, nn.BatchNorm2d):
        nn.init.normal_(module.weight, 1.0, 0.02)


def train_generator(options: argparse.Namespace) -> None:
    torch.manual_seed(options.seed)
    device = options.device
    held = torch.load(options.out / "classifier.pt", map_location=device, weights_only=True)
    judge = classifier().to(device)
    judge.load_state_dict(held["state"])
    judge.eval()
    images = stacked(digits(options.mnist, "train", device)[0], options.seed)[: options.images]
    generator = Generator().to(device)
    discriminator = nn.Sequential(trunk(), nn.Conv2d(WIDTH * 4, 1, 4), nn.Flatten(0)).to(device)
    guess = nn.Sequential(trunk(), nn.Conv2d(WIDTH * 4, NOISE, 4), nn.Flatten()).to(device)
    for module in (generator, discriminator, guess):
        module.apply(started)
    entropy = options.model == "entropy"
    taught = [*generator.parameters(), *(guess.parameters() if entropy else ())]
    first = torch.optim.Adam(taught, RATE, BETAS)
    second = torch.optim.Adam(discriminator.parameters(), RATE, BETAS)
    found: dict[int, np.ndarray] = {}
    start = time.monotonic()
    for epoch in range(1, options.epochs + 1):
        order = torch.randperm(len(images), device=device)
        for chosen in order[: len(order) // BATCH * BATCH].split(BATCH):
            noise = torch.randn(BATCH, NOISE, device=device)
            fakes = generator(noise)
            real, fake = discriminator(images[chosen]), discriminator(fakes.detach())
            second.zero_grad(set_to_none=True)
            (F.softplus(-real).mean() + F.softplus(fake).mean()).backward()
            second.step()
            first.zero_grad(set_to_none=True)
            loss = F.softplus(-discriminator(fakes)).mean()
            if entropy:
                loss = loss + options.weight * F.mse_loss(guess(fakes), noise)
            loss.backward()
            first.step()
        seconds = time.monotonic() - start
        if epoch % 5 == 0 or epoch == options.epochs:
            samples = drawn(generator, device)
            found[epoch] = judged(judge, samples)
            modes = len(np.unique(found[epoch].argmax(2) @ np.array([100, 10, 1])))
            print(f"{options.model}, epoch {epoch}: {modes} modes, {seconds:.0f} s", flush=True)
            save(options, found, held["accuracy"], samples[:64], seconds)


@torch.no_grad()
def drawn(generator: Generator, device: str) -> torch.Tensor:
    """Samples, normalised by the averages of the training, as usual."""
    generator.eval()
    found = torch.cat([generator(noise) for noise in torch.randn(SAMPLES, NOISE, device=device).split(2000)])
    generator.train()
    return found


def save(
    options: argparse.Namespace,
    found: dict[int, np.ndarray],
    accuracy: float,
    some: torch.Tensor,
    seconds: float,
) -> None:
    np.savez_compressed(
        options.out / f"{options.model}.npz",
        epochs=np.array(list(found)),
        probabilities=np.stack(list(found.values())),
        accuracy=accuracy,
        seconds=seconds,
        seed=options.seed,
        samples=((some.cpu().numpy() + 1) * 127.5).round().astype(np.uint8),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", choices=["classifier", "dcgan", "entropy"])
    parser.add_argument("--mnist", type=Path, required=True, help="folder with the files of MNIST")
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument("--epochs", type=int, help="50; 12 for the classifier")
    parser.add_argument("--images", type=int, default=IMAGES, help="images to train with (60,000)")
    parser.add_argument("--weight", type=float, default=1.0, help="of the bound on the entropy")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    options.epochs = options.epochs or (12 if options.model == "classifier" else 50)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    (train_classifier if options.model == "classifier" else train_generator)(options)


if __name__ == "__main__":
    main()
