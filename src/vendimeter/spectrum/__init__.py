"""What is known of the eigenvalues of ρ, and what follows for the score of every order.

ρ is the similarity matrix with trace one, K/n or diag(√p) K diag(√p). Its eigenvalues λ sum to one. The score of
order q is the Hill number VS_q = (Σ λ^q)^(1/(1−q)): q = 0 is the rank, q = 1 the Vendi Score exp(−Σ λ log λ),
q = 2 is 1/‖ρ‖_F² and q = ∞ is 1/λ_max. Only this module knows entropy.

`Eigenvalues` knows all of them up to rounding; `Moment` one norm of them. `LowRank` knows lower bounds on the leading
ones and the sum of the rest.
"""

from __future__ import annotations

from vendimeter.spectrum.eigenvalues import Eigenvalues, Moment, bracket
from vendimeter.spectrum.entropy import UNIT, Answer, Level, Spectrum, hill, parse_order, parse_orders
from vendimeter.spectrum.lowrank import LowRank
from vendimeter.spectrum.quadrature import Quadrature

__all__ = [
    "UNIT",
    "Answer",
    "Eigenvalues",
    "Level",
    "LowRank",
    "Moment",
    "Quadrature",
    "Spectrum",
    "bracket",
    "hill",
    "parse_order",
    "parse_orders",
]
