"""Markdown of answers: parsing, streaming and colouring. Nothing here loads a resource."""
