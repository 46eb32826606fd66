"""Identical items and near copies: all pairs that are alike enough, or found by hashing among more items than that."""
