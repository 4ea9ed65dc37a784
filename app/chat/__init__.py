"""Conversations: messages as a tree, the turn loop, context building."""
