"""The MLX side of a base: its folder, LoRA in its modules. Runs in child processes only."""
