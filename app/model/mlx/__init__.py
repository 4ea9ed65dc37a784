"""What inference and training on MLX share. Nothing outside ``backends`` imports MLX."""
