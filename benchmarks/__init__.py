"""Measured claims: each benchmark prints its figures beside what they are held against."""
