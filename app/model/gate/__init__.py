"""The gate: the frozen evaluator between training and activation."""
