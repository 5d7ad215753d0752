"""What a model is: its files and layout, ONNX Runtime sessions, tokens, and one decoding step after another."""
