"""Speech recognition: the stage, drafts, and what they need of a recogniser."""
