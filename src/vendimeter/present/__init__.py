"""How results, progress and other people's text look: in a terminal, in tables, and in markup."""
