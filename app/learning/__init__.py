"""The loop: from a signal to a lesson, a gated change of the weights, and back."""
