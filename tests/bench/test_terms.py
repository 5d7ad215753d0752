"""The benchmarks of terms in recognition and in translation."""

from __future__ import annotations

import wave
from pathlib import Path

import pytest

from pipeline.audio.recording import read_audio
from pipeline.bench import __main__ as bench
from tests.conftest import PHRASES, ROOT, read_wav


@pytest.mark.slow
def test_the_command_counts_terms_with_and_without_the_glossary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = read_audio(ROOT / "tests" / "audio" / "names.opus")
    others = read_wav(PHRASES)[168_000:256_000]  # without names
    for name, samples, text in (("names", names, "Brontik Quindarra Taravelle"), ("others", others, "")):
        with wave.open(str(tmp_path / f"{name}.wav"), "wb") as file:
            file.setparams((1, 2, 16_000, 0, "NONE", ""))
            file.writeframes(samples.tobytes())
        (tmp_path / f"{name}.txt").write_text(text)
    glossary = tmp_path / "terms.tsv"
    glossary.write_text("Brontik\t=\nQuindarra\t=\nTaravelle\t=\nVelmora\t=\n")
    arguments = ["terms", str(tmp_path), "--glossary", str(glossary), "--asr", "tiny.en", "--prompt-terms", "4"]
    assert bench.run(arguments) == 0
    title, _, *rows = capsys.readouterr().out.splitlines()
    assert title == "4 terms, said 3 times in 3 words"
    counts = {row[: row.index("  ")]: list(map(int, row[row.index("  ") :].split()[:4])) for row in rows}
    assert list(counts) == ["no glossary", "4 terms in the prompt", "4 terms in the prompt, corrected"]
    right, missed, invented, corrected = zip(*counts.values(), strict=True)
    assert [sum(each) for each in zip(right, missed, strict=True)] == [3, 3, 3]
    assert right[0] == 0 < 2 <= right[1] <= right[2]
    assert sum(invented) == 0
    assert corrected[:2] == (0, 0)


@pytest.mark.parametrize(
    ("config", "counts"),
    [("demo-zh", "en-zh: 10 sentences, 10 terms, "), ("demo-zh-en", "zh-en: 10 sentences, 10 terms, ")],
)
def test_the_command_compares_translations_with_and_without_the_glossary(
    config: str, counts: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ROOT / "tests" / "nmt" / "terms"
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("\n".join((given / "sentences.tsv").read_text("utf-8").splitlines()[:10]), "utf-8")
    arguments = ["translated_terms", str(pairs), "--glossary", str(given / "glossary.tsv"), "--config", config]
    assert bench.run([*arguments, "--rounds", "1"]) == 0
    title, without, with_terms, ratio = capsys.readouterr().out.splitlines()
    assert title == f"{counts}0 of them cannot be written by the model"
    assert without.startswith("without: 0 kept, chrF ")
    assert with_terms.startswith("with: 10 kept, chrF ")
    scores = [float(line.partition("chrF ")[2].partition(",")[0]) for line in (without, with_terms)]
    assert scores[0] < scores[1]
    assert ratio.startswith("time a sentence ")
