"""python -m pipeline.live: live subtitles for a microphone, or for a recording played in real time."""

from __future__ import annotations

from .apps import entry_point

main = entry_point(".live", "python -m pipeline.live")

if __name__ == "__main__":
    main()
