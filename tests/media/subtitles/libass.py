"""Render ASS and SubRip files with libass through FFmpeg, with the one font that Matplotlib includes."""

import os
import subprocess
import tempfile
from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT = 960, 540
_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{fonts}</dir><cachedir>{cache}</cachedir></fontconfig>
"""


def frames(path: Path, seconds: int) -> NDArray[np.uint8]:
    """One grey picture per second [seconds, HEIGHT, WIDTH], taken at half past; white text on black."""
    with tempfile.TemporaryDirectory() as folder:
        fonts = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
        configuration = Path(folder) / "fonts.conf"
        configuration.write_text(_FONTS.format(fonts=fonts, cache=Path(folder) / "cache"), "utf-8")
        command = ["ffmpeg", "-v", "error", "-f", "lavfi"]
        command += ["-i", f"color=c=black:s={WIDTH}x{HEIGHT}:r=1:d={seconds},setpts=PTS+0.5/TB"]
        command += ["-vf", f"{'ass' if path.suffix == '.ass' else 'subtitles'}={path.name},format=gray"]
        command += ["-f", "rawvideo", "-"]
        surroundings = {**os.environ, "FONTCONFIG_FILE": str(configuration)}
        drawn = subprocess.run(command, cwd=path.parent, env=surroundings, capture_output=True, check=False)
    assert drawn.returncode == 0, drawn.stderr.decode()
    return np.frombuffer(drawn.stdout, np.uint8).reshape(seconds, HEIGHT, WIDTH)
