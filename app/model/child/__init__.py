"""Child processes: one small framed protocol, one supervisor, nothing about models."""
