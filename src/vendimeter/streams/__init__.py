"""Sums that grow batch by batch and merge: accumulators, their files, and scores of what does not fit into memory."""
