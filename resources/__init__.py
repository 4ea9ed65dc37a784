"""Data that ships with the app: suites, anchors, wordings."""
