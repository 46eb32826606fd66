"""The report: one self-contained HTML page about a collection, or several side by side."""
