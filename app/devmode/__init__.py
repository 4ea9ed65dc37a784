"""Developer mode: the only way to the weights."""
