"""Speech recognition by Whisper on CTranslate2, with faster-whisper's features and tokenizer."""
