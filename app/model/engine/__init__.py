"""Engines: one loaded base that answers, scores and swaps adapters. What runs it is a child process."""
