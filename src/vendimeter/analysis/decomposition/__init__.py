"""What each item contributes to a score, in memory or beside every row of files that are larger than memory."""
