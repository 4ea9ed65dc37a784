"""The MLX side of a base: its folder, its tokenizer, LoRA in its modules. Runs in child processes only."""
