"""Runtimes. Each is the main module of a child process and is imported nowhere else."""
