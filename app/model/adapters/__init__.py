"""Adapters: the canonical form, which is the identity of learned weights, and what each runtime loads instead."""
