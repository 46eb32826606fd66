"""Data as users have it: arrays, tables, texts, pictures, molecules, groups and weights, read and checked."""
