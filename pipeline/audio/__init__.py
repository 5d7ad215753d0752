"""Sources of audio, as an app imports them; they are defined in ``pipeline.media.audio``."""
