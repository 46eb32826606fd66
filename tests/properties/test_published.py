"""Numbers that others have printed: the official README, the paper's tables."""

import math

import numpy as np
import pytest

import vendimeter as vm

POINTS = [0, 0, 10, 10, 20, 20]


def hill_number_of_dense_matrix(K):
    """The definition, word for word: eigenvalues of K/n, then the exponential of their Shannon entropy."""
    eigenvalues = np.linalg.eigvalsh(np.asarray(K, dtype=float) / len(K))
    positive = eigenvalues[eigenvalues > 1e-14]
    return math.exp(-sum(value * math.log(value) for value in positive))


def exponential(a, b):
    return math.exp(-abs(a - b))


def exponential_block(A, B):
    return np.exp(-np.abs(np.subtract.outer(np.asarray(A), np.asarray(B))))


README_CASES = {
    "laplacian kernel": (POINTS, vm.kernels.Laplacian(1.0)),
    "laplacian kernel, array": (np.array(POINTS, dtype=float), vm.kernels.Laplacian(1.0)),
    "function of two items": (POINTS, lambda a, b: math.exp(-abs(a - b))),
    "FromFunction": (POINTS, vm.kernels.FromFunction(exponential)),
    "FromFunction of blocks": (POINTS, vm.kernels.FromFunction(exponential_block, block=True)),
    "matrix": (exponential_block(POINTS, POINTS), "precomputed"),
    "distances": (np.abs(np.subtract.outer(POINTS, POINTS)), vm.kernels.FromDistances(scale=1.0)),
}


@pytest.mark.parametrize("case", README_CASES)
def test_six_points_of_the_official_readme_score_2_9999(case):
    samples, kernel = README_CASES[case]
    score = vm.score(samples, kernel)
    assert score == pytest.approx(2.9999, abs=1.01e-4)  # printed there as 2.9999, which is 3 − 4e-9 cut off
    assert score == pytest.approx(2.999999996, abs=1e-9)
    reference = hill_number_of_dense_matrix(exponential_block(POINTS, POINTS))
    assert score == pytest.approx(reference, rel=1e-12)
    assert score.bounds[0] <= reference <= score.bounds[1]


def test_matrix_of_the_official_readme_scores_2_1573():
    K = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    score = vm.score(K, kernel="precomputed")
    assert round(score, 4) == 2.1573
    # Its eigenvalues are 1.9/3, 1/3 and 0.1/3.
    exact = math.exp(-sum(x / 3 * math.log(x / 3) for x in (1.9, 1.0, 0.1)))
    assert score == pytest.approx(exact, rel=1e-13)


# The published pixel Vendi Scores of the MNIST test set, digits 0 to 9: cosine similarity of flattened 32×32 images.
MNIST_BY_DIGIT = [7.68, 5.31, 12.18, 9.97, 11.10, 13.51, 9.06, 9.58, 9.69, 8.56]


@pytest.fixture(scope="module")
def mnist(shared_data):
    path = shared_data / "images" / "mnist_test.npz"
    if not path.is_file():
        pytest.skip("images/mnist_test.npz is not in the folder ../shared/data")
    image = pytest.importorskip("PIL.Image", reason="the images are resized with Pillow")
    with np.load(path) as archive:
        images, labels = archive["images"], archive["labels"]
    resized = [np.asarray(image.fromarray(one).resize((32, 32), image.Resampling.BICUBIC)) for one in images]
    return np.stack(resized).reshape(len(images), -1), labels


@pytest.fixture(scope="module")
def digits(mnist):
    pixels, labels = mnist
    return vm.score_groups(pixels, by=labels)


def test_mnist_digits_score_as_published(mnist, digits):
    _, labels = mnist
    assert sorted(digits.labels) == list(range(10))
    assert [round(digits[digit], 2) for digit in range(10)] == MNIST_BY_DIGIT
    assert [digits[digit].n for digit in range(10)] == np.bincount(labels).tolist()


def test_mnist_digit_scores_lie_within_narrow_bounds(digits):
    # About half of the 1,024 eigenvalues are 0 (pixels that are always black), which widens the bounds a little.
    assert set(digits.levels) == {"deterministic"}
    assert (digits.low <= digits.scores).all()
    assert (digits.scores <= digits.high).all()
    assert ((digits.high - digits.low) <= 1e-8 * digits.scores).all()
