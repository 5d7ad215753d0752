"""Train the demo's English→Chinese translator, a small Marian, and export it to ONNX.

    python models/recipes/nmt_en_zh.py --pairs cmn.txt --work /tmp/nmt-en-zh [--workers 2] [--steps 8500]

``cmn.txt`` is the English–Mandarin selection of Tatoeba (manythings.org/anki, CC BY 2.0 FR): English, Chinese and
attribution separated by tabs. Every stage saves under --work and is skipped when found there.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
from card import table, write_card
from heldout import SENTENCES
from marian import Pair, Size, averaged, export, make_vocabulary, spoken, store_half, train
from phrasebook import corpus, draws
from transformers import MarianMTModel, MarianTokenizer

HERE = Path(__file__).resolve().parent
SHIPPED = HERE.parent / "demo" / "nmt-en-zh"
SIZE = Size(source_pieces=3000, target_pieces=4500, d_model=192, heads=6, ffn=768, encoder_layers=3, decoder_layers=2)
PHRASES = 20_000
TEST = 500


def read_pairs(path: Path) -> list[Pair]:
    """English with simplified Chinese, duplicates removed."""
    from opencc import OpenCC

    if not path.exists():
        sys.exit(
            f"no such file: {path}. Get the English-Mandarin pairs of manythings.org/anki and name them with --pairs"
        )
    simplify = OpenCC("t2s").convert
    pairs: dict[Pair, None] = {}
    for line in path.read_text("utf-8-sig").splitlines():
        english, chinese, *_ = line.split("\t")
        pairs[english.strip(), simplify(chinese.strip())] = None
    return list(pairs)


def split(pairs: list[Pair], seed: int) -> tuple[list[Pair], list[Pair]]:
    """(training, test) with no English sentence, whatever its case and marks, on both sides."""
    keys = sorted({spoken(english) for english, _ in pairs})
    held = set(random.Random(seed).sample(keys, TEST)) | {spoken(english) for english in SENTENCES}
    training = [pair for pair in pairs if spoken(pair[0]) not in held]
    test: dict[str, Pair] = {}
    for pair in pairs:
        if spoken(pair[0]) in held:
            test.setdefault(spoken(pair[0]), pair)
    return training, list(test.values())


def translate(model: MarianMTModel, tokenizer: MarianTokenizer, sources: list[str], beams: int) -> list[str]:
    found: list[str] = []
    for start in range(0, len(sources), 50):
        batch = tokenizer(sources[start : start + 50], return_tensors="pt", padding=True)
        ids = model.generate(**batch, num_beams=beams, max_length=100)
        found += tokenizer.batch_decode(ids, skip_special_tokens=True)
    return found


def evaluate(model: MarianMTModel, tokenizer: MarianTokenizer, test: list[Pair], phrases: list[Pair]) -> dict[str, Any]:
    from sacrebleu.metrics import BLEU, CHRF

    bleu, chrf = BLEU(tokenize="zh"), CHRF()
    figures: dict[str, Any] = {}
    sets = (("tatoeba", test, False), ("tatoeba, spoken style", test, True), ("phrasebook", phrases, False))
    for name, pairs, said in sets:
        sources = [spoken(english) if said else english for english, _ in pairs]
        found = translate(model, tokenizer, sources, beams=1)
        references = [[chinese for _, chinese in pairs]]
        figures[name] = {
            "sentences": len(pairs),
            "bleu": round(bleu.corpus_score(found, references).score, 1),
            "chrf": round(chrf.corpus_score(found, references).score, 1),
        }
    figures["signatures"] = [str(bleu.get_signature()), str(chrf.get_signature())]
    return figures


def ship(exported: Path, vocabulary: Path, destination: Path) -> None:
    """The files that the demo needs: the encoder, the merged decoder, tokenizer and settings."""
    destination.mkdir(parents=True, exist_ok=True)
    for name in ("encoder_model.onnx", "decoder_model_merged.onnx"):
        store_half(exported / name, destination / name)
    for name in ("config.json", "generation_config.json"):
        shutil.copy(exported / name, destination / name)
    for name in ("source.spm", "target.spm", "vocab.json", "tokenizer_config.json"):
        shutil.copy(vocabulary / name, destination / name)


def describe(destination: Path, figures: dict[str, Any], options: argparse.Namespace, pairs: int) -> None:
    """Write the model card from what was measured."""
    names = [name for name in figures if name != "signatures"]
    rows = [(name, *(figures[name][key] for key in ("sentences", "bleu", "chrf"))) for name in names]
    steps = torch.load(options.work / "checkpoint.pt", weights_only=True)["step"]
    write_card(
        destination,
        "Demo translator, English → Chinese",
        {
            "What it is": "A small Marian (transformers' `MarianMTModel`): "
            f"{SIZE.encoder_layers} + {SIZE.decoder_layers} layers, d_model {SIZE.d_model}, exported to ONNX with optimum "
            "(the merged layout). Weights are stored in half precision and computed in fp32. It makes the demo work "
            "without a download; it is no general translator.",
            "Trained on": f"{pairs:,} English–Chinese sentence pairs of the Tatoeba Project (tatoeba.org; the selection of "
            "manythings.org/anki; CC BY 2.0 FR; © their contributors, named a pair in that selection), converted to "
            f"simplified script with OpenCC, and {PHRASES:,} pairs of `models/recipes/phrasebook.py` (travel, times, prices, "
            f"meetings). 15 % of the sources in lower case without marks. {steps:,} steps on a "
            "CPU: `models/recipes/nmt_en_zh.py`.",
            "Measured": "Greedy decoding; no test sentence, whatever its case and marks, is in training. The phrasebook's "
            "test sentences are unseen combinations of seen phrases, which is why they score so high.\n\n"
            + table(("test set", "sentences", "BLEU", "chrF"), rows)
            + "\n\nsacrebleu signatures: "
            + "; ".join(f"`{signature}`" for signature in figures["signatures"]),
            "Limits": "Outside the phrasebook it is often wrong: rare words are invented, long sentences lose their thread. "
            "Numbers are translated as words, not digits. Simplified script only.",
            "Licence": "Apache-2.0 for the weights; the attribution above goes with them.",
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=SHIPPED)
    parser.add_argument("--steps", type=int, default=8500)
    parser.add_argument("--batch", type=int, default=1400, help="padded tokens a worker a step")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dropout", type=float, default=0.15)
    parser.add_argument("--peak", type=float, default=1.5e-3, help="highest learning rate")
    parser.add_argument("--bf16", action="store_true", help="bfloat16 matrix products (CPUs with AVX512-BF16 or AMX)")
    parser.add_argument("--stage", choices=("all", "train", "export"), default="all")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    training, test = split(read_pairs(options.pairs), options.seed)
    test_phrases = corpus(300, options.seed + 2, exclude=SENTENCES)
    phrases = draws(PHRASES, options.seed + 1, exclude=SENTENCES | {english for english, _ in test_phrases})
    everything = training + phrases
    vocabulary = options.work / "vocabulary"
    if not (vocabulary / "tokenizer_config.json").exists():
        make_vocabulary(vocabulary, everything, SIZE, ("en", "zh"))
    if options.stage in ("all", "train"):
        train(options.work, SIZE, everything, options)
    if options.stage in ("all", "export"):
        torch.set_num_threads(2)
        model = averaged(options.work, SIZE)
        tokenizer = MarianTokenizer.from_pretrained(vocabulary)
        figures = evaluate(model, tokenizer, test, test_phrases)
        (options.work / "figures.json").write_text(json.dumps(figures, indent=1))
        print(json.dumps(figures, indent=1))
        ship(export(model, vocabulary, options.work), vocabulary, options.out)
        describe(options.out, figures, options, len(training))


if __name__ == "__main__":
    main()
