"""A small frozen sentence encoder: judges meaning where comparing words is too strict."""
