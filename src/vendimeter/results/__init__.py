"""What comes back: a score, a profile, scores of groups, and what every result of an analysis offers."""
