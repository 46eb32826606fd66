"""Solvers: a Similarity with weights → what is known of its eigenvalues."""
