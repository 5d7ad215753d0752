"""The detectors of speech: webrtcvad and Silero."""
