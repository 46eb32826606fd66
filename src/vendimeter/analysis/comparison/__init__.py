"""Groups side by side: their scores at a common size, their differences, and diversity within and between them."""
