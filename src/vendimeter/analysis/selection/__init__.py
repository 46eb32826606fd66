"""The most diverse items of a collection, chosen greedily, under rules of who may be chosen."""
