"""Training: a job of plain values in, an adapter file out, in a child process."""
