"""What is on disk: objects, refs, audit log, database. One writer."""
