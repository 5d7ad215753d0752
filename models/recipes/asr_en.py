"""Train the demo's English recogniser: a Whisper-architecture model small enough to ship, for faster-whisper.

    python models/recipes/asr_en.py --work /tmp/asr-en [--workers 2] [--steps 8000]

Every stage saves what it made under --work and is skipped when it is found there, so a stopped run goes on from where
it was: speech (synthesised), tokenizer, training (a checkpoint every few minutes), conversion, evaluation, card.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import signal
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one thread a worker; more threads fight for the cores

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from card import table, write_card
from faster_whisper.feature_extractor import FeatureExtractor
from heldout import SENTENCES
from phrasebook import corpus
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GenerationConfig, PreTrainedTokenizerFast, WhisperConfig, WhisperForConditionalGeneration
from voices import SAMPLE_RATE, TRAINING_VOICES, UNSEEN_VOICES, random_prosody, require_programs, speak

HERE = Path(__file__).resolve().parent
SHIPPED = HERE.parent / "demo" / "asr-en"
POSITIONS = 1500  # Whisper's encoder positions for 30 s; faster-whisper pads every window to them
CHARACTERS = " 'abcdefghijklmnopqrstuvwxyz"
SHARD = 500
PIECES = 640
SPECIALS = (
    "<|endoftext|>",
    "<|startoftranscript|>",
    "<|en|>",
    "<|translate|>",
    "<|transcribe|>",
    "<|startoflm|>",
    "<|startofprev|>",
    "<|nospeech|>",
    "<|notimestamps|>",
    *(f"<|{i * 0.02:.2f}|>" for i in range(1501)),
)


# --- speech ---------------------------------------------------------------------------------------------------------


def sentences(count: int, seed: int) -> tuple[list[str], list[str]]:
    """Training and test sentences, disjoint from each other and from what demo and tests speak."""
    everything = [english for english, _ in corpus(count + 400, seed, exclude=SENTENCES)]
    random.Random(seed).shuffle(everything)
    return everything[400:], everything[:400]


def _speak_shard(job: tuple[Path, list[str], list[str], int]) -> None:
    path, texts, voices, seed = job
    rng = random.Random(seed)
    clips = [
        (speak(text, voice, **random_prosody(rng)) * 32767).astype(np.int16)
        for text, voice in zip(texts, voices, strict=True)
    ]
    ends = np.cumsum([len(clip) for clip in clips])
    partial = path.with_suffix(".partial.npz")
    np.savez(partial, audio=np.concatenate(clips), ends=ends, texts=np.array(texts), voices=np.array(voices))
    partial.rename(path)


def make_speech(work: Path, count: int, seed: int, workers: int) -> None:
    require_programs()
    folder = work / "speech"
    folder.mkdir(parents=True, exist_ok=True)
    train, test = sentences(count, seed)
    rng = random.Random(seed)
    jobs = []
    sets = [
        ("train", train, TRAINING_VOICES),
        ("test-seen", test[:200], TRAINING_VOICES),
        ("test-unseen", test[200:], UNSEEN_VOICES),
    ]
    for name, texts, voices in sets:
        for start in range(0, len(texts), SHARD):
            path = folder / f"{name}-{start:06d}.npz"
            chunk = texts[start : start + SHARD]
            chosen = [rng.choice(voices) for _ in chunk]
            if not path.exists():
                jobs.append((path, chunk, chosen, seed + start))
    with ProcessPoolExecutor(workers) as pool:
        for done, _ in enumerate(pool.map(_speak_shard, jobs), 1):
            print(f"speech: {done} of {len(jobs)} shards", flush=True)


def load_speech(work: Path, name: str) -> tuple[list[np.ndarray], list[str], list[str]]:
    clips: list[np.ndarray] = []
    texts: list[str] = []
    voices: list[str] = []
    for path in sorted((work / "speech").glob(f"{name}-*.npz")):
        shard = np.load(path)
        clips += np.split(shard["audio"], shard["ends"][:-1])
        texts += [str(text) for text in shard["texts"]]
        voices += [str(voice) for voice in shard["voices"]]
    return clips, texts, voices


# --- tokenizer ------------------------------------------------------------------------------------------------------


def make_tokenizer(work: Path, texts: list[str]) -> Tokenizer:
    path = work / "tokenizer.json"
    if path.exists():
        return Tokenizer.from_file(str(path))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    # The whole byte alphabet is kept: faster-whisper encodes symbols that no training text holds.
    trainer = trainers.BpeTrainer(
        vocab_size=PIECES, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator([" " + text for text in texts], trainer)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIALS])
    tokenizer.save(str(path))
    return tokenizer


# --- model ----------------------------------------------------------------------------------------------------------


def make_model(tokenizer: Tokenizer) -> WhisperForConditionalGeneration:
    identity = {token: tokenizer.token_to_id(token) for token in SPECIALS[:9]}
    config = WhisperConfig(
        vocab_size=tokenizer.get_vocab_size(),
        num_mel_bins=80,
        d_model=160,
        encoder_layers=4,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=640,
        decoder_ffn_dim=640,
        max_source_positions=POSITIONS,
        max_target_positions=448,
        dropout=0.0,
        pad_token_id=identity["<|endoftext|>"],
        bos_token_id=identity["<|endoftext|>"],
        eos_token_id=identity["<|endoftext|>"],
        decoder_start_token_id=identity["<|startoftranscript|>"],
        begin_suppress_tokens=[tokenizer.encode(" ").ids[0], identity["<|endoftext|>"]],
        suppress_tokens=[],
    )
    return WhisperForConditionalGeneration(config)


def _heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def _attend(block: Any, x: torch.Tensor, memory: torch.Tensor, bias: torch.Tensor | None, causal: bool) -> torch.Tensor:
    query, key, value = (
        _heads(projection(source), block.num_heads)
        for projection, source in ((block.q_proj, x), (block.k_proj, memory), (block.v_proj, memory))
    )
    mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=bias, is_causal=causal)
    return block.out_proj(mixed.transpose(1, 2).flatten(2))


def encode(model: Any, features: torch.Tensor, stride: int, dropout: float) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Whisper's encoder over ``features`` [B, 80, T] as if padded with zeros to 30 s, at a fraction of the cost.

    Past the speech all convolution outputs are one constant, and neighbouring positions differ little: every
    ``stride``-th padding position stands for its neighbours, its attention logit raised by log(stride). Returns the
    states [B, T/2 + sampled, d_model], the attention bias and the number of positions that hold features.
    """
    encoder = model.model.encoder
    x = F.gelu(encoder.conv2(F.gelu(encoder.conv1(F.pad(features, (0, 4))))))
    real = x.shape[2] - 1  # the last output saw the convolution's own border, not more zeros
    silence = x.new_zeros(1, features.shape[1], 12)
    constant = F.gelu(encoder.conv2(F.gelu(encoder.conv1(silence))))[:, :, 3:4]
    offset = random.randrange(stride)
    sampled = torch.arange(real + offset, POSITIONS, stride)
    x = torch.cat([x[:, :, :real], constant.expand(x.shape[0], -1, len(sampled))], dim=2).transpose(1, 2)
    positions = torch.cat([torch.arange(real), sampled])
    x = F.dropout(x + encoder.embed_positions.weight[positions], dropout)
    bias = torch.zeros(len(positions))
    bias[real:] = math.log((POSITIONS - real) / max(1, len(sampled)))
    bias = bias[None, None, None, :].expand(-1, 1, -1, -1)
    for layer in encoder.layers:
        normed = layer.self_attn_layer_norm(x)
        x = x + F.dropout(_attend(layer.self_attn, normed, normed, bias, False), dropout)
        x = x + F.dropout(layer.fc2(F.gelu(layer.fc1(layer.final_layer_norm(x)))), dropout)
    return encoder.layer_norm(x), bias, real


def decode(model: Any, tokens: torch.Tensor, memory: torch.Tensor, bias: torch.Tensor, dropout: float) -> torch.Tensor:
    """Logits [B, L, vocabulary] of ``tokens`` [B, L] against the encoder's ``memory``."""
    decoder = model.model.decoder
    x = decoder.embed_tokens(tokens) + decoder.embed_positions.weight[: tokens.shape[1]]
    x = F.dropout(x, dropout)
    for layer in decoder.layers:
        normed = layer.self_attn_layer_norm(x)
        x = x + F.dropout(_attend(layer.self_attn, normed, normed, None, True), dropout)
        x = x + F.dropout(_attend(layer.encoder_attn, layer.encoder_attn_layer_norm(x), memory, bias, False), dropout)
        x = x + F.dropout(layer.fc2(F.gelu(layer.fc1(layer.final_layer_norm(x)))), dropout)
    return F.linear(decoder.layer_norm(x), decoder.embed_tokens.weight)


# --- batches --------------------------------------------------------------------------------------------------------


def noise(rng: np.random.Generator, count: int) -> np.ndarray:
    """White to brownish noise, or a hum of a few tones, of unit power."""
    if rng.random() < 0.15:
        t = np.arange(count) / SAMPLE_RATE
        wave = sum(rng.random() * np.sin(2 * np.pi * f * t) for f in rng.uniform(50, 2000, size=4))
    else:
        spectrum = np.fft.rfft(rng.standard_normal(count))
        spectrum /= np.arange(1, len(spectrum) + 1) ** rng.uniform(0, 0.8)
        wave = np.fft.irfft(spectrum, count)
    return wave / max(1e-9, float(np.sqrt(np.mean(np.square(wave)))))


def augment(rng: np.random.Generator, clips: list[np.ndarray]) -> np.ndarray:
    """One segment as an endpointer would cut it: silence around, level, room and noise drawn at random."""
    parts = [np.zeros(int(SAMPLE_RATE * rng.uniform(0.0, 0.4)))]
    for clip in clips:
        parts += [clip.astype(np.float64) / 32768, np.zeros(int(SAMPLE_RATE * rng.uniform(0.05, 0.6)))]
    audio = np.concatenate(parts)
    power = float(np.sqrt(np.mean(np.square(audio)))) if clips else 0.05
    if clips and rng.random() < 0.15:
        length = int(SAMPLE_RATE * rng.uniform(0.1, 0.4))
        room = rng.standard_normal(length) * np.exp(-6.9 * np.arange(length) / length) * rng.uniform(0.05, 0.3)
        room[0] = 1.0
        size = len(audio) + length
        audio = np.fft.irfft(np.fft.rfft(audio, size) * np.fft.rfft(room, size), size)[: len(audio)]
    if rng.random() < 0.7 or not clips:
        audio = audio + noise(rng, len(audio)) * power * 10 ** (-rng.uniform(8, 45) / 20)
    return (audio * 10 ** rng.uniform(-1.0, 0.25)).clip(-1, 1).astype(np.float32)


class Batches:
    """Endless random batches; utterances of like length together."""

    def __init__(self, clips: list[np.ndarray], texts: list[str], tokenizer: Tokenizer, seed: int, size: int) -> None:
        self.clips, self.texts, self.tokenizer, self.size = clips, texts, tokenizer, size
        self.random = np.random.default_rng(seed)
        self.extract = FeatureExtractor()
        self.order = np.argsort([len(clip) for clip in clips])
        self.silence = tokenizer.token_to_id("<|nospeech|>")
        self.end = tokenizer.token_to_id("<|endoftext|>")
        self.prompt = [tokenizer.token_to_id(t) for t in ("<|startoftranscript|>", "<|notimestamps|>")]

    def next(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, list[list[int]]]:
        """features [B, 80, T], frames [B], decoder input [B, L], labels [B, L] (-100 ignored), CTC targets."""
        rng = self.random
        centre = int(rng.integers(len(self.order)))
        low = min(max(0, centre - 100), max(0, len(self.order) - 200))
        chosen = rng.choice(self.order[low : low + 200], self.size, replace=False)
        features, inputs, labels, targets = [], [], [], []
        joined = rng.random() < 0.15
        for index in chosen:
            indices = [int(index)]
            if joined:
                indices.append(int(rng.integers(len(self.clips))))
            draw = rng.random()
            if draw < 0.03:
                indices = []
            clips = [self.clips[i] for i in indices]
            if not clips:
                audio = augment(rng, [np.zeros(int(SAMPLE_RATE * rng.uniform(0.3, 3)), np.int16)])
                if rng.random() < 0.7:
                    audio = audio + noise(rng, len(audio)).astype(np.float32) * 10 ** rng.uniform(-4, -1)
            else:
                audio = augment(rng, clips)
            text = "".join(" " + self.texts[i] for i in indices)
            ids = self.tokenizer.encode(text).ids if text else []
            features.append(torch.from_numpy(self.extract(audio)))
            inputs.append(self.prompt + ids)
            labels.append(([self.prompt[1]] if ids else [self.silence]) + ids + [self.end])
            targets.append([CHARACTERS.index(c) + 1 for c in text.lower().replace("-", " ").strip() if c in CHARACTERS])
        frames = torch.tensor([f.shape[1] for f in features])
        width = int(frames.max()) + int(frames.max()) % 2
        batch = torch.stack([F.pad(f, (0, width - f.shape[1])) for f in features])
        length = max(len(row) for row in inputs)
        tokens = torch.tensor([row + [self.end] * (length - len(row)) for row in inputs])
        wanted = torch.tensor([row + [-100] * (length - len(row)) for row in labels])
        return batch, frames, tokens, wanted, targets


# --- training -------------------------------------------------------------------------------------------------------


def learning_rate(step: int, steps: int, peak: float = 1.5e-3, warmup: int = 300) -> float:
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps))))


def train_worker(rank: int, work: Path, options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{work / 'rendezvous'}", rank=rank, world_size=options.workers)
    clips, texts, _ = load_speech(work, "train")
    tokenizer = make_tokenizer(work, texts)
    torch.manual_seed(options.seed)
    model = make_model(tokenizer)
    head = torch.nn.Linear(160, len(CHARACTERS) + 1)
    parameters = [p for p in (*model.parameters(), *head.parameters()) if p.requires_grad]
    optimiser = torch.optim.AdamW(parameters, lr=1e-3, betas=(0.9, 0.98), weight_decay=0.01)
    step, checkpoint = 0, work / "checkpoint.pt"
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        head.load_state_dict(saved["head"])
        optimiser.load_state_dict(saved["optimiser"])
        step = saved["step"]
    batches = Batches(clips, texts, tokenizer, options.seed + 1000 * rank + 7 * step, options.batch)
    random.seed(options.seed + rank + step)
    began, last_saved, shown = time.time(), time.time(), [0.0, 0.0]
    log = (work / "train.log").open("a")
    while step < options.steps:
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(step, options.steps)
        features, frames, tokens, labels, targets = batches.next()
        done = step / options.steps
        stride = random.choice((25, 50, 100)) if done < 0.7 else random.choice((5, 10, 25))
        with torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
            memory, bias, real = encode(model, features, stride, 0.05)
            logits = decode(model, tokens, memory, bias, 0.05)
            spelled = head(memory[:, :real])
        cross = F.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), label_smoothing=0.05)
        ctc = F.ctc_loss(
            spelled.float().log_softmax(-1).transpose(0, 1),
            torch.tensor([i for row in targets for i in row]),
            (frames + 1) // 2,
            torch.tensor([len(row) for row in targets]),
            zero_infinity=True,
        )
        (cross + (0.6 if done < 0.6 else 0.2) * ctc).backward()
        present = [p for p in parameters if p.grad is not None]
        if options.workers > 1:
            flat = torch.cat([p.grad.flatten() for p in present])
            dist.all_reduce(flat)
            flat /= options.workers
            for p, piece in zip(present, flat.split([p.numel() for p in present]), strict=True):
                p.grad.copy_(piece.view_as(p))
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        step += 1
        shown = [0.98 * old + 0.02 * float(new) for old, new in zip(shown, (cross, ctc), strict=True)]
        if rank == 0 and step % 50 == 0:
            line = f"step {step} cross-entropy {shown[0]:.3f} ctc {shown[1]:.3f} {time.time() - began:.0f} s"
            print(line, file=log, flush=True)
        if rank == 0 and (time.time() - last_saved > 120 or step == options.steps):
            state = {
                "model": model.state_dict(),
                "head": head.state_dict(),
                "optimiser": optimiser.state_dict(),
                "step": step,
            }
            torch.save(state, checkpoint.with_suffix(".partial"))
            checkpoint.with_suffix(".partial").rename(checkpoint)
            last_saved = time.time()
    dist.barrier()
    dist.destroy_process_group()


def train(work: Path, options: argparse.Namespace) -> None:
    (work / "rendezvous").unlink(missing_ok=True)
    _, texts, _ = load_speech(work, "train")
    make_tokenizer(work, texts)
    # A run that is told to stop takes its workers along.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    torch.multiprocessing.spawn(train_worker, (work, options), nprocs=options.workers, daemon=True)


# --- conversion -----------------------------------------------------------------------------------------------------


def convert(work: Path, destination: Path) -> None:
    """Write the CTranslate2 int8 model that faster-whisper loads."""
    from ctranslate2.converters import TransformersConverter

    tokenizer = Tokenizer.from_file(str(work / "tokenizer.json"))
    model = make_model(tokenizer)
    saved = torch.load(work / "checkpoint.pt", weights_only=True)
    model.load_state_dict(saved["model"])
    folder = work / "hf"
    shutil.rmtree(folder, ignore_errors=True)
    config = model.config
    heads = [[layer, head] for layer in range(config.decoder_layers) for head in range(config.decoder_attention_heads)]
    model.generation_config = GenerationConfig(
        decoder_start_token_id=config.decoder_start_token_id,
        eos_token_id=config.eos_token_id,
        pad_token_id=config.pad_token_id,
        begin_suppress_tokens=config.begin_suppress_tokens,
        suppress_tokens=[],
        alignment_heads=heads,
        no_timestamps_token_id=tokenizer.token_to_id("<|notimestamps|>"),
        max_length=448,
    )
    config.begin_suppress_tokens = config.suppress_tokens = None
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(
        tokenizer_file=str(work / "tokenizer.json"),
        unk_token="<|endoftext|>",
        bos_token="<|endoftext|>",
        eos_token="<|endoftext|>",
    ).save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(
        json.dumps(
            {
                "feature_extractor_type": "WhisperFeatureExtractor",
                "feature_size": 80,
                "sampling_rate": SAMPLE_RATE,
                "hop_length": 160,
                "n_fft": 400,
                "chunk_length": 30,
                "nb_max_frames": 3000,
            }
        )
    )
    converted = work / "converted"
    TransformersConverter(str(folder), copy_files=["tokenizer.json", "preprocessor_config.json"]).convert(
        str(converted), quantization="int8", force=True
    )
    destination.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "model.bin", "tokenizer.json", "preprocessor_config.json", "vocabulary.json"):
        shutil.copy(converted / name, destination / name)


# --- evaluation -----------------------------------------------------------------------------------------------------


def words(text: str) -> list[str]:
    return "".join(c if c.isalnum() or c == "'" else " " for c in text.lower()).split()


def edits(reference: list[str], hypothesis: list[str]) -> int:
    """Levenshtein distance in words."""
    row = list(range(len(hypothesis) + 1))
    for i, wanted in enumerate(reference, 1):
        diagonal, row[0] = row[0], i
        for j, found in enumerate(hypothesis, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (wanted != found))
    return row[-1]


def evaluate(work: Path, model_dir: Path, verbose: bool) -> dict[str, Any]:
    """Word error rate of the shipped files through faster-whisper, with its own padding, on both test sets."""
    from faster_whisper import WhisperModel

    model = WhisperModel(str(model_dir), device="cpu", compute_type="int8", cpu_threads=2)
    figures: dict[str, Any] = {}
    for name in ("test-seen", "test-unseen"):
        clips, texts, _ = load_speech(work, name)
        wrong = total = 0
        began, seconds = time.time(), 0.0
        for clip, text in zip(clips, texts, strict=True):
            audio = np.pad(clip, (4800, 4800)).astype(np.float32) / 32768
            segments, _ = model.transcribe(
                audio,
                language="en",
                beam_size=1,
                without_timestamps=True,
                condition_on_previous_text=False,
                temperature=0.0,
            )
            heard = " ".join(segment.text for segment in segments)
            wrong += edits(words(text), words(heard))
            total += len(words(text))
            seconds += len(audio) / SAMPLE_RATE
            if verbose:
                print(f"{text} => {heard}")
        figures[name] = {
            "wer_percent": round(100 * wrong / total, 1),
            "sentences": len(texts),
            "real_time_factor": round((time.time() - began) / seconds, 3),
        }
    return figures


def describe(destination: Path, figures: dict[str, Any], options: argparse.Namespace) -> None:
    """Write the model card from what was measured."""
    names = {"test-seen": "voices of the training", "test-unseen": "voices never heard in training"}
    rows = [(names[n], f["sentences"], f"{f['wer_percent']} %", f["real_time_factor"]) for n, f in figures.items()]
    steps = torch.load(options.work / "checkpoint.pt", weights_only=True)["step"]
    spoken = len(load_speech(options.work, "train")[1])
    write_card(
        destination,
        "Demo speech recogniser, English",
        {
            "What it is": "A model of Whisper's architecture (4 + 2 layers, d_model 160, a vocabulary of its own), trained "
            "from scratch and converted to CTranslate2 int8 for faster-whisper. It makes the demo work without a "
            "download; it knows the phrasebook of `models/recipes/phrasebook.py` (travel, times, prices, meetings: about "
            "400 words) and no other English.",
            "Trained on": f"{spoken:,} sentences of that phrasebook, spoken by synthetic voices: flite (slt, rms, "
            "awb, kal16; BSD-style licence) and espeak-ng (English accents and variants; the program is GPL-3, what it "
            "speaks is free to use), with level, noise and room drawn at random. No human speech. "
            f"{steps:,} steps on a CPU: `models/recipes/asr_en.py`.",
            "Measured": "Through faster-whisper, greedy, the shipped int8 files, unseen sentences:\n\n"
            + table(("voices", "sentences", "word error rate", "real-time factor"), rows),
            "Limits": "Human speech, other voices than synthetic ones and words outside the phrasebook are out of its domain: "
            "what it writes then is wrong. It writes numbers as words. No timestamps, no other language.",
            "Licence": "Apache-2.0.",
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="where intermediate files live")
    parser.add_argument("--out", type=Path, default=SHIPPED, help="where the finished model goes")
    parser.add_argument("--sentences", type=int, default=14_000)
    parser.add_argument("--steps", type=int, default=8_000)
    parser.add_argument("--batch", type=int, default=10, help="utterances a worker a step")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bf16", action="store_true", help="bfloat16 matrix products (CPUs with AVX512-BF16 or AMX)")
    parser.add_argument("--stage", choices=("all", "speech", "train", "convert", "evaluate"), default="all")
    parser.add_argument("--verbose", action="store_true", help="print every test transcript")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    stages = ("speech", "train", "convert", "evaluate") if options.stage == "all" else (options.stage,)
    if "speech" in stages:
        make_speech(options.work, options.sentences, options.seed, options.workers)
    if "train" in stages:
        train(options.work, options)
    if "convert" in stages:
        convert(options.work, options.out)
    if "evaluate" in stages:
        figures = evaluate(options.work, options.out, options.verbose)
        print(json.dumps(figures, indent=1))
        describe(options.out, figures, options)


if __name__ == "__main__":
    main()
