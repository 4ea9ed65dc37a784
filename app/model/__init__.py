"""Everything that touches a model: bases, engine, training, gate, lineage."""
