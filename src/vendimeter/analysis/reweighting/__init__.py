"""The weights of greatest diversity, with a bound on how much better any weights could be."""
