"""Whisper on CTranslate2, with faster-whisper's features and tokenizer."""

from pipeline.asr.whisper.recognizer import WhisperRecognizer

__all__ = ["WhisperRecognizer"]
