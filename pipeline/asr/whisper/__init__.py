"""Whisper on CTranslate2, with faster-whisper's features and tokenizer."""

from .recognizer import WhisperRecognizer

__all__ = ["WhisperRecognizer"]
