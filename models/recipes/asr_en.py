"""Train the demo's English recogniser: a Whisper-architecture model small enough to ship, for faster-whisper.

    python models/recipes/asr_en.py --pairs cmn.txt --work /tmp/asr-en [--workers 2] [--steps 20000]

``cmn.txt`` is the English–Mandarin selection of Tatoeba (manythings.org/anki); its English side is spoken, and the
phrasebook, twice, by voices drawn anew; then sentences crossed from these, others into which rarer words were put,
WordNet's examples, and ``everyday.txt``; some of all these also by the voices that are most like people's. ``--init``
goes on from the weights of a finished model (``models/demo/asr-en``), or of another run, whose --work stays until the
card is written; with ``--decoder-alone`` only what spells what the encoder hears is trained.
Speech and training save what they made under --work, so a stopped run goes on from where it was: shards of sentences, a
checkpoint every hundred steps. Conversion, evaluation and card take minutes and are made anew.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from needs import TRAIN, require_packages

require_packages(*TRAIN, "wordfreq")

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one thread a worker; more threads fight for the cores
# oneDNN's kernels are each for one length: a thousand of them, as it keeps, take gigabytes and are seldom used again.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "32")

import evaluate
import numpy as np
import torch
import torch.nn.functional as F
from asr_model import HEADS, convert, decode, encode, make_model
from card import SHIPPED, refuse_other_files
from corpora import EVERYDAY_FROM, EXAMPLES_FROM, WORDS_FROM, everyday, examples, spoken_pairs, tested, varied
from ct2 import whisper_weights
from features import bent, blurred, coloured, log_mel, rippled, stretched, warped
from growth import widened
from heldout import SENTENCES
from lineage import Run, Shape, begin, begun_with, digest, finished, keep, run_of, shape_of, tell
from optimisers import make_optimisers
from pieces import STEP_S, keep_tokenizer, make_tokenizer
from speech import Clip, drawing_weights, load_speech, make_speech, takes, unlike, utterance
from tatoeba import ATTRIBUTION
from tokenizers import Tokenizer
from voices import (
    LICENCES,
    TRAINING_VOICES,
    articulated_voice,
    natural_voice,
    quick_voice,
    random_voice,
    require_voices,
)
from workers import check, join, launch, leave, share_gradients

CHARACTERS = " 'abcdefghijklmnopqrstuvwxyz"
SHAPE = Shape(d_model=320, encoder_layers=6, decoder_layers=2, ffn=1280)  # the shipped model's
LONGEST_S = 24.0  # of a training segment
SAVE_STEPS = 100
HEAD_STEPS = 300  # in which CTC trains only its head, where a finished model is gone on from, which has none
TAKES = 8  # of a recording, at most, that the decoder alone trains on
NATURAL = 5_000  # recordings by mixed Kokoro voices, on top of Kokoro's usual share
ARTICULATED = 10_000  # recordings by GnuSpeech's bodies
EXAMPLES = 15_000  # sentences and phrases of another source, for words that Tatoeba's lack


def speak_all(work: Path, pairs: Path, phrases: int, seed: int) -> None:
    folder = work / "speech"
    texts = [english for english, _ in spoken_pairs(pairs, phrases)[0]]
    again = random.Random(seed).sample(texts, len(texts))  # in another order: a shard's prosody is drawn by its number
    crossed, reworded = varied(pairs, texts, seed)
    takes = {"train": texts, "train-again": again, "train-crossed": crossed, "train-reworded": reworded}
    takes |= {"train-examples": examples(texts, tested(pairs), EXAMPLES, seed)}
    everything = [*texts, *crossed, *reworded]
    everyday_lines = everyday([*texts, *takes["train-examples"]], tested(pairs), seed)
    natural = random.Random(seed).sample(everything, min(NATURAL, len(everything)))
    sets = {name: (part, random_voice) for name, part in takes.items()}
    sets |= {"train-natural": (natural, natural_voice)}
    sets |= {"train-everyday": (everyday_lines, quick_voice)}
    articulated = random.Random(seed + 1).sample(everything, min(ARTICULATED, len(everything)))
    sets |= {"train-articulated": (articulated, articulated_voice)}
    if (work / "checkpoint.pt").exists() and unlike(folder, sets, seed):
        sys.exit(
            f"the training in {work} has heard other recordings than --pairs, --phrases and --seed ask for: use another "
            "--work, or --stage train and --stage export to go on with those that it has"
        )
    require_voices(TRAINING_VOICES["gnuspeech"].voices)
    evaluate.speak_tests(folder, pairs)  # which asks for the training's other voices, too
    make_speech(folder, sets, seed)


# Features [80, frames], decoder input, labels, CTC targets.
Row = tuple[torch.Tensor, list[int], list[int], list[int]]
# Of several segments, with the frames that each has.
Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, list[list[int]]]
# The encoder's states [B, positions, d_model], what ``encode`` returns besides, decoder input, labels.
Memories = tuple[torch.Tensor, float, int, torch.Tensor, torch.Tensor]
SORTED = 4  # batches that are drawn together, so that segments of like length come into one


# --- batches --------------------------------------------------------------------------------------------------------


class Batches:
    """Endless random batches; utterances of like length together.

    Workers of one ``pace`` draw batches of like length at the same time and do not wait for each other.
    """

    def __init__(self, clips: list[Clip], tokenizer: Tokenizer, pace: int, seed: int, size: int) -> None:
        self.clips, self.tokenizer, self.size = clips, tokenizer, size
        self.pace, self.random = np.random.default_rng(pace), np.random.default_rng(seed)
        self.drawn: list[list[Row]] = []
        self.order = np.argsort([len(clip.samples) for clip in clips])
        self.weights = drawing_weights(clips)
        self.start, self.plain, self.silence, self.end, self.zero = (
            tokenizer.token_to_id(f"<|{name}|>")
            for name in ("startoftranscript", "notimestamps", "nospeech", "endoftext", "0.00")
        )

    def next(self) -> Batch:
        """features [B, 80, T], frames [B], decoder input [B, L], labels [B, L] (-100 ignored), CTC targets."""
        if not self.drawn:
            rows = sorted(self._rows(SORTED * self.size), key=lambda row: row[0].shape[1])
            self.drawn = [rows[start : start + self.size] for start in range(0, len(rows), self.size)]
        return self._joined(self.drawn.pop())

    def once(self, indices: np.ndarray) -> Batch:
        """These recordings, each in a segment of its own or with a few others, disturbed as any."""
        joined = self.random.choice((1, 2, 3, 4), p=(0.9, 0.06, 0.03, 0.01))
        others = self.random.integers(len(self.clips), size=(len(indices), joined - 1))
        silent = self.random.random(len(indices)) < 0.03
        chosen = [[] if none else [index, *more] for none, index, more in zip(silent, indices, others, strict=True)]
        return self._joined([self._row([self.clips[i] for i in row]) for row in chosen])

    def _joined(self, rows: list[Row]) -> Batch:
        features, inputs, labels, targets = zip(*rows, strict=True)
        frames = torch.tensor([f.shape[1] for f in features])
        width = int(frames.max()) + int(frames.max()) % 2
        batch = torch.stack([F.pad(f, (0, width - f.shape[1])) for f in features])
        length = max(map(len, inputs))
        tokens = torch.tensor([row + [self.end] * (length - len(row)) for row in inputs])
        wanted = torch.tensor([row + [-100] * (length - len(row)) for row in labels])
        return batch, frames, tokens, wanted, list(targets)

    def _rows(self, count: int) -> list[Row]:
        rng = self.random
        centre = int(self.pace.integers(len(self.order)))
        # Many times as many as are drawn, or the engines' weights would count for little.
        low = min(max(0, centre - 5 * count), max(0, len(self.order) - 10 * count))
        near = self.order[low : low + 10 * count]
        joined = self.pace.choice((1, 2, 3, 4), p=(0.9, 0.06, 0.03, 0.01))  # a long one takes as long as several
        weights = self.weights[near]
        rows = []
        for index in rng.choice(near, count, replace=len(near) < count, p=weights / weights.sum()):
            chosen = [int(index), *rng.integers(len(self.clips), size=joined - 1).tolist()]
            rows.append(self._row([] if rng.random() < 0.03 else [self.clips[i] for i in chosen]))
        return rows

    def _row(self, clips: list[Clip]) -> Row:
        rng = self.random
        said = utterance(rng, clips)
        while len(said.audio) > LONGEST_S * 16_000:
            clips = clips[:-1]
            said = utterance(rng, clips)
        timed = bool(clips) and rng.random() < (0.25 if len(clips) == 1 else 0.5)  # several sentences need them
        features = log_mel(said.audio)
        if clips and not timed and rng.random() < 0.6:  # every 0.14 s slower or faster, a quarter or so
            times = np.exp(rng.normal(0, 0.11) + rng.normal(0, 0.25, features.shape[1] // 14 + 2))
            changed = stretched(features, times)
            features = changed if changed.shape[1] < LONGEST_S * 100 else features
        features = self._revoiced(features)
        self._mask(features)
        spelled = " ".join(text for *_, text in said.sentences).lower().replace("-", " ")
        target = [CHARACTERS.index(c) + 1 for c in spelled if c in CHARACTERS]
        if not clips:
            return features, [self.start, self.plain], [self.silence, self.end], target
        if timed:
            ids = []
            for begin, finish, text in said.sentences:
                ids += [self._time(begin), *self.tokenizer.encode(" " + text).ids, self._time(finish)]
            return features, [self.start, *ids], [*ids, self.end], target
        ids = self.tokenizer.encode("".join(" " + text for *_, text in said.sentences)).ids
        return features, [self.start, self.plain, *ids], [self.plain, *ids, self.end], target

    def _time(self, seconds: float) -> int:
        return self.zero + min(1500, round(seconds / STEP_S))

    def _revoiced(self, features: torch.Tensor) -> torch.Tensor:
        """Speakers, synthesisers and microphones differ in more than the recipe's few have to show."""
        rng = self.random
        if rng.random() < 0.6:
            features = warped(features, rng.uniform(0.84, 1.19))
        if rng.random() < 0.6:
            features = coloured(features, rng.normal(0, 5, size=6))
        if rng.random() < 0.5:
            features = bent(features, rng.normal(0, 1.5, size=6))
        if rng.random() < 0.35:
            for _ in range(rng.integers(1, 3)):
                features = blurred(features, rng.uniform(0.1, 0.3))
            if rng.random() < 0.5:
                features = rippled(features, rng.uniform(80, 300), rng.uniform(0.03, 0.12))
        if rng.random() < 0.5:  # more contrast, or less
            mean = features.mean()
            features = mean + (features - mean) * rng.uniform(0.75, 1.2)
        return features

    def _mask(self, features: torch.Tensor) -> None:
        """SpecAugment (Park et al. 2019): bands of mels and stretches of time are blanked: the rest must do."""
        rng, frames, mean = self.random, features.shape[1], features.mean()
        for _ in range(rng.binomial(2, 0.4)):
            low, width = int(rng.integers(0, 70)), int(rng.integers(1, 15))
            features[low : low + width] = mean
        if rng.random() < 0.75:
            for _ in range(1 + rng.poisson(frames / 200)):
                at, width = int(rng.integers(0, max(1, frames - 20))), int(rng.integers(1, 32))
                features[:, at : at + width] = mean


class Heard(torch.utils.data.IterableDataset[Memories]):
    """What the encoder made of every recording, in an order drawn anew for every round."""

    def __init__(self, paths: list[Path], seed: int) -> None:
        self.paths, self.seed = paths, seed

    def __iter__(self) -> Iterator[Memories]:
        rng = random.Random(self.seed)
        while True:
            for path in rng.sample(self.paths, len(self.paths)):
                yield tuple(torch.load(path, weights_only=True))


class Feed(torch.utils.data.IterableDataset[Batch]):
    """Batches made by processes of their own, which a GPU needs many of; each draws from a seed of its own."""

    def __init__(self, clips: list[Clip], tokenizer: Tokenizer, pace: int, seed: int, size: int) -> None:
        self.arguments = clips, tokenizer, pace, seed, size

    def __iter__(self) -> Iterator[Batch]:
        clips, tokenizer, pace, seed, size = self.arguments
        worker = torch.utils.data.get_worker_info()
        own = 101 * worker.id if worker else 0
        batches = Batches(clips, tokenizer, pace + own, seed + own, size)
        while True:
            yield batches.next()


# --- training -------------------------------------------------------------------------------------------------------


def learning_rate(step: int, steps: int, peak: float) -> float:
    """Up to ``peak`` in 300 steps, or a tenth of a short training; then down by a cosine."""
    warmup = min(300, steps // 10)
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps))))


def start_from(model: torch.nn.Module, head: torch.nn.Module, folder: Path) -> None:
    """Take over the weights that another run would ship, or those of a finished model, which has no ``head``.

    What the other network lacks adds nothing yet: encoder layers begin as copies of its last two, a wider
    feed-forward layer's further units as random as its weights are, and a multiple of its channels repeats them.
    In all else the two are alike.
    """
    if finished(folder):
        arrays = whisper_weights(folder)
    else:
        arrays = {name: w.numpy() for name, w in shipped_weights(folder).items() if name != "proj_out.weight"}
        arrays |= {f"head.{kind}": w.numpy() for kind, w in saved_in(folder)["head"].items()}
    mine, norm = model.state_dict(), "model.encoder.layer_norm.weight"
    wide = widened(arrays, len(mine[norm]) // len(arrays[norm]), HEADS)
    weights = {name: torch.from_numpy(w) for name, w in wide.items()}
    if not finished(folder):
        head.load_state_dict({kind: weights.pop(f"head.{kind}") for kind in ("weight", "bias")})
    for name, had in weights.items():
        if had.shape != mine[name].shape:
            torch.nn.init.normal_(mine[name], std=0.0 if name.endswith("fc2.weight") else had.std().item())
            mine[name][tuple(map(slice, had.shape))] = had
            weights[name] = mine[name]
    missing, _ = model.load_state_dict(weights, strict=False)
    layers = model.get_submodule("model.encoder.layers")
    count = sum(name.startswith("model.encoder.layers.") and name.endswith(".fc1.weight") for name in weights)
    added = tuple(f"model.encoder.layers.{number}." for number in range(count, len(layers)))
    if lacking := [name for name in missing if name != "proj_out.weight" and not name.startswith(added)]:
        sys.exit(f"{folder} lacks weights: {', '.join(lacking)}")
    for number in range(count, len(layers)):
        layers[number].load_state_dict(layers[max(0, count - 2 + (number - count) % 2)].state_dict())
        for silent in (layers[number].self_attn.out_proj, layers[number].fc2):
            torch.nn.init.zeros_(silent.weight)
            torch.nn.init.zeros_(silent.bias)


def hear_worker(rank: int, work: Path, options: argparse.Namespace) -> None:
    """Keep what the encoder makes of every recording, disturbed anew each time, batches of like length together."""
    torch.set_num_threads(1)
    clips = load_speech(work / "speech", "train")
    tokenizer = make_tokenizer(work / "tokenizer.json", [])
    model = make_model(tokenizer, options.run.shape)
    start_from(model, torch.nn.Linear(options.run.shape.d_model, len(CHARACTERS) + 1), begun_with(work, options.run))
    chunks = takes(clips, options.batch, TAKES)
    for number in range(rank, len(chunks), options.workers):
        path = work / "heard" / f"{number:06d}.pt"
        if path.exists():
            continue
        random.seed(number)
        features, _, tokens, labels, _ = Batches(clips, tokenizer, number, number, 1).once(chunks[number])
        with torch.no_grad():
            memory, bias, real = encode(model, features, random.choice((50, 100)), 0.0)
        torch.save([memory.half(), bias, real, tokens, labels], path.with_suffix(".partial"))
        path.with_suffix(".partial").rename(path)
        if number % 100 == 0:
            print(f"heard: {number} of {len(chunks)} batches", flush=True)


def train_worker(rank: int, work: Path, options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    join(rank, work, options.workers)
    tokenizer = make_tokenizer(work / "tokenizer.json", [])
    torch.manual_seed(options.seed)
    device = torch.device(options.device)
    model = make_model(tokenizer, options.run.shape)
    head = torch.nn.Linear(options.run.shape.d_model, len(CHARACTERS) + 1)
    run, checkpoint = options.run, work / "checkpoint.pt"
    if options.init and not checkpoint.exists():
        start_from(model, head, options.init)
    model.model.encoder.requires_grad_(not run.decoder_alone)
    model, head = model.to(device), head.to(device)
    parameters = [p for p in (*model.parameters(), *head.parameters()) if p.requires_grad]
    optimisers = make_optimisers(model, head, options.workers, options.bf16 or options.device != "cpu")
    average = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    step, head_alone = 0, HEAD_STEPS if options.init and finished(options.init) else 0
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True, map_location=device)
        model.load_state_dict(saved["model"])
        head.load_state_dict(saved["head"])
        for optimiser, state in zip(optimisers, saved["optimisers"], strict=True):
            optimiser.load_state_dict(state)
        step, average = saved["step"], saved["average"]
    pace = options.seed + 7 * step
    own = pace + 1000 * rank + 500
    if run.decoder_alone:
        feed: Any = Heard(sorted((work / "heard").glob("*.pt"))[rank :: options.workers], own)
    else:
        feed = Feed(load_speech(work / "speech", "train"), tokenizer, pace, own, options.batch)
    batches = iter(torch.utils.data.DataLoader(feed, batch_size=None, num_workers=options.feeders))
    random.seed(pace)
    torch.manual_seed(pace + 1000 * rank)
    began, shown = time.time(), [0.0, 0.0]
    log = (work / "train.log").open("a")
    while step < options.steps:
        for optimiser in optimisers:
            for group in optimiser.param_groups:
                group["lr"] = learning_rate(step, options.steps, options.peak)
        if run.decoder_alone:
            cross, ctc = spelling_loss(model, next(batches), options), torch.zeros(())
        else:
            cross, ctc = losses(model, head, next(batches), step / options.steps, step < head_alone, options)
        (cross + (0.6 if step / options.steps < 0.6 else 0.2) * ctc).backward()
        share_gradients(parameters, options.workers)
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        for optimiser in optimisers:
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        step += 1
        saves = step % SAVE_STEPS == 0 or step == options.steps
        if saves and options.workers > 1:
            optimisers[0].consolidate_state_dict(to=0)
        shown = [0.98 * old + 0.02 * new.item() for old, new in zip(shown, (cross, ctc), strict=True)]
        if rank:
            continue
        with torch.no_grad():
            for name, tensor in model.state_dict().items():
                average[name].lerp_(tensor, max(0.002, 9 / (10 + step)))
        if step % 50 == 0:
            line = f"step {step} cross-entropy {shown[0]:.3f} ctc {shown[1]:.3f} {time.time() - began:.0f} s"
            print(line, file=log, flush=True)
        if saves:
            state = {"model": model.state_dict(), "head": head.state_dict(), "average": average, "step": step}
            state["optimisers"] = [optimiser.state_dict() for optimiser in optimisers]
            torch.save(state, checkpoint.with_suffix(".partial"))
            run.steps = step
            keep(work, run)  # first: a checkpoint never lacks it
            checkpoint.with_suffix(".partial").rename(checkpoint)
    leave(options.workers)


def losses(
    model: torch.nn.Module, head: torch.nn.Module, batch: Batch, done: float, alone: bool, options: argparse.Namespace
) -> tuple[torch.Tensor, torch.Tensor]:
    """Label-smoothed cross-entropy of the decoder and CTC of the encoder over letters; ``done`` is 0 to 1.

    CTC trains its ``head`` ``alone`` as long as that knows nothing.
    """
    device = next(head.parameters()).device
    features, frames, tokens, labels = (part.to(device) for part in batch[:4])
    targets = batch[4]
    stride = random.choice((50, 100, 200)) if done < 0.9 else random.choice((5, 10, 25))
    with torch.autocast(device.type, torch.bfloat16, enabled=options.bf16):
        memory, bias, real = encode(model, features, stride, options.dropout)
        logits = decode(model, tokens, memory, bias, real, options.dropout)
        heard = memory[:, :real]
        spelled = head(heard.detach() if alone else heard)
    cross = smoothed(logits, labels)
    ctc = F.ctc_loss(
        spelled.float().log_softmax(-1).transpose(0, 1),
        torch.tensor([i for row in targets for i in row], device=device),
        (frames + 1) // 2,
        torch.tensor([len(row) for row in targets], device=device),
        zero_infinity=True,
    )
    return cross, ctc


def spelling_loss(model: torch.nn.Module, batch: Memories, options: argparse.Namespace) -> torch.Tensor:
    """Label-smoothed cross-entropy of the decoder, on what the encoder made of the recordings before."""
    device = model.model.decoder.embed_positions.weight.device
    memory, tokens, labels = (batch[i].to(device) for i in (0, 3, 4))
    with torch.autocast(device.type, torch.bfloat16, enabled=options.bf16):
        heard = F.dropout(memory.float(), options.dropout)
        return smoothed(decode(model, tokens, heard, batch[1], batch[2], options.dropout), labels)


def smoothed(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), label_smoothing=0.05)


def train(work: Path, options: argparse.Namespace) -> None:
    clips, tokenizer = load_speech(work / "speech", "train"), work / "tokenizer.json"
    if options.init and not (work / "checkpoint.pt").exists():  # its embeddings are of its pieces
        keep_tokenizer(tokenizer, (options.init / "tokenizer.json").read_text("utf-8"))
    make_tokenizer(tokenizer, [clip.text for clip in clips])
    if options.run.decoder_alone:
        (work / "heard").mkdir(exist_ok=True)
        launch(hear_worker, work, options.workers, options)
    launch(train_worker, work, options.workers, options)


def shipped_weights(work: Path) -> dict[str, torch.Tensor]:
    """Those of the training in ``work``, averaged over its steps, and with those that it began with, as its run says.

    Such a mean keeps what was known before and takes on what is new (Wortsman et al. 2022, Robust fine-tuning).
    """
    weights: dict[str, torch.Tensor] = saved_in(work)["average"]
    run = run_of(work)
    init = begun_with(work, run)
    if run.share == 1 or init is None:
        return weights
    if finished(init):
        before = {name: torch.from_numpy(w) for name, w in whisper_weights(init).items()}
        before["proj_out.weight"] = before["model.decoder.embed_tokens.weight"]
    else:
        before = shipped_weights(init)
    return {name: before[name].lerp(new, run.share) for name, new in weights.items()}


def saved_in(work: Path) -> dict[str, Any]:
    saved: dict[str, Any] = torch.load(work / "checkpoint.pt", weights_only=True, map_location="cpu")
    return saved


def wanted_shape(work: Path, options: argparse.Namespace) -> Shape:
    """What the options ask for; the rest as the weights are that they go on from."""
    if (work / "checkpoint.pt").exists():
        before = run_of(work).shape
    else:
        before = shape_of(options.init) if options.init else SHAPE
    given = {name: getattr(options, name) for name in asdict(before) if getattr(options, name) is not None}
    return replace(before, **given)


def facts_of(work: Path) -> dict[str, Any]:
    """What the card tells of the training, and the test sentences that weights it began with had been trained on."""
    tests = evaluate.test_texts(work / "speech")
    told = tell(work, tests)
    facts: dict[str, Any] = {
        "domain": "It knows everyday sentences of up to ten words and the phrasebook of "
        "`models/recipes/phrasebook.py` (travel, times, prices, meetings).",
        "trained_on": f"{told.recordings:,} recordings of {told.sentences:,} sentences: the English side of {ATTRIBUTION}, the phrasebook, what "
        "results when the beginning of one sentence is joined to the end of another, and these with one or two words "
        f"replaced by rarer ones ({WORDS_FROM}), {EXAMPLES_FROM}, and {EVERYDAY_FROM}; spoken by "
        f"synthetic voices: {LICENCES}. Speed, pitch, level, noise, rooms, far microphones and telephone bands "
        f"drawn at random. No human speech. `models/recipes/asr_en.py`: {told.trainings}.",
        "held_out": "No test sentence is in the training, and none of the voices that the table calls unseen. The number of "
        "hypotheses, how their length counts and the threshold of `configs/demo.toml`, and how much of the last training went into the weights, were "
        "chosen on these test sets, with these weights or older ones.",
        "shape": asdict(run_of(work).shape),
        "trainings": told.trainings,
        "tests": digest(tests),
        "heard_before": told.heard_before,
        "spoken_before": told.spoken_before,
    }
    if told.heard_before:
        facts["held_out"] += (
            f" {len(told.heard_before)} of the test sentences were in an earlier training that this one goes on from: "
            "they are left out here."
        )
    if told.spoken_before:
        facts["held_out"] += (
            f" {told.spoken_before} of the {len(SENTENCES)} sentences that the demo and the tests speak were in an earlier training."
        )
    return facts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="where intermediate files live")
    parser.add_argument("--out", type=Path, default=SHIPPED / "asr-en", help="where the finished model goes")
    parser.add_argument("--phrases", type=int, default=10_000, help="sentences of the phrasebook that are spoken")
    parser.add_argument(
        "--init", type=Path, help="a finished model, or the --work of another run: whose weights to start from"
    )
    parser.add_argument(
        "--share", type=float, help="of the trained weights in the result, at first 1; the rest: those of --init"
    )
    parser.add_argument(
        "--decoder-alone",
        action="store_true",
        help="leave --init's encoder as it is, and train on what it makes of every recording, kept: several times as fast",
    )
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=10, help="utterances a worker a step")
    parser.add_argument("--peak", type=float, default=1e-3, help="highest learning rate")
    parser.add_argument("--dropout", type=float, default=0.0, help="0.05 where time allows for many epochs")
    parser.add_argument("--workers", type=int, default=2, help="processes that train; 1 on a GPU")
    parser.add_argument("--feeders", type=int, default=0, help="processes a worker that prepare batches; 0: none")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    network = parser.add_argument_group("the network's size (default: that of --init, or the shipped model's)")
    network.add_argument("--d-model", type=int)
    network.add_argument("--encoder-layers", type=int)
    network.add_argument("--decoder-layers", type=int)
    network.add_argument("--ffn", type=int, help="inner units of a feed-forward layer")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bf16", action="store_true", help="bfloat16 matrix products (CPUs with AVX512-BF16 or AMX)")
    parser.add_argument("--stage", choices=("all", "speech", "train", "export"), default="all")
    options = parser.parse_args()
    check(parser, options)
    if options.share is not None and not 0 < options.share <= 1:
        parser.error("--share is above 0 and at most 1")
    if options.feeders and options.workers > 1:
        parser.error("--feeders needs --workers 1: a worker of several has no processes of its own")
    if options.decoder_alone and not (options.init or (options.work / "checkpoint.pt").exists()):
        parser.error("--decoder-alone needs an encoder that hears: name a model with --init")
    if options.d_model and options.d_model % HEADS:
        parser.error(f"--d-model {options.d_model} is no multiple of the {HEADS} heads")
    refuse_other_files(options.out)
    work = options.work
    work.mkdir(parents=True, exist_ok=True)
    if options.stage == "export":
        run = run_of(work)
    else:
        shape, init = wanted_shape(work, options), options.init and options.init.resolve()
        parts = [(0, options.batch * options.workers, options.peak)]
        run = options.run = begin(work, Run(shape, init, parts, decoder_alone=options.decoder_alone))
        options.init = begun_with(work, run)
    if options.share:
        run.share = options.share
    if run.share < 1 and ((init := begun_with(work, run)) is None or shape_of(init) != run.shape):
        sys.exit(f"--share {run.share:g}: {work} did not begin with weights of its shape")
    if options.stage in ("all", "speech"):
        speak_all(work, options.pairs, options.phrases, options.seed)
    if options.stage in ("all", "train"):
        train(work, options)
    if options.stage in ("all", "export"):
        run = replace(run_of(work), share=run.share)
        keep(work, run)
        facts = facts_of(work)
        convert(work, options.out, run.shape, shipped_weights(work))
        (options.out / "training.json").write_text(json.dumps(facts, indent=1) + "\n")
        evaluate.recogniser(options.out, work / "speech")


if __name__ == "__main__":
    main()
