"""Neural machine translation: Marian models on ONNX Runtime, a token at a time."""
