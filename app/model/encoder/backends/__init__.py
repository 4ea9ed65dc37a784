"""What runs in the encoder's child process."""
