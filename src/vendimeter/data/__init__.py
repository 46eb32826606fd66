"""Data as users have it: arrays of any library, tables, texts, pictures, molecules, groups and weights, read and checked."""
