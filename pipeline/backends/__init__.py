"""What recognises and translates: each kind loads its models, and has a protocol of the engine."""
