"""Files → columns of samples."""
