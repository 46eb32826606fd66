"""The sections of a report: one module each, from an analysis to blocks of the document."""
