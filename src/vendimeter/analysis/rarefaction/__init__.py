"""The score against the number of samples, and what a sample says of the population it was drawn from."""
