"""Neural machine translation: Marian models on ONNX Runtime, decoded token by token."""
