"""What runs inside the trainer child. The only place of this room that imports torch, PEFT or MLX."""
