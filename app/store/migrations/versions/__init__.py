"""One file a step; see the package above."""
