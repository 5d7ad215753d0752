"""python -m pipeline.live: live subtitles for a microphone, or for a recording played in real time."""

from __future__ import annotations

from .apps.entry import program

main = program(".live", "python -m pipeline.live")

if __name__ == "__main__":
    main()
