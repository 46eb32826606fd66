"""How numbers, values, tables, files, progress and other people's text are written: a leaf that everything may use."""
