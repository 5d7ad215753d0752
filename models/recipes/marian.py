"""Vocabulary, model, training loop and ONNX export, shared by the Marian recipes."""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import shutil
import string
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one thread per worker; more would compete for the cores

import numpy as np
import onnx
import sentencepiece
import torch
import torch.nn.functional as F
from align import Alignments
from compiled import marian_weights
from feed import Encoder, Example, batches, encode
from onnx import TensorProto, helper, numpy_helper
from prefixes import Ids, Prefixes
from progress import progress
from repair import train_only
from schedule import guidance, learning_rate
from tatoeba import Pair
from transformers import GenerationConfig, MarianConfig, MarianMTModel, MarianTokenizer
from workers import join, launch, leave, prefetched, share_gradients

Sets = dict[str, list[Pair]]

SMOOTHING = 0.1  # of labels
AVERAGE_DECAY = 0.999  # of the averaged weights, per step: about the last 1,000 steps count
AVERAGED_EVERY = 4  # steps; averaging reads and writes all weights
# The output is computed for the target side's pieces alone, which is faster, but for one step of so many: the others must
# stay improbable.
ALL_ROWS_EVERY = 8
# Exponent of the probabilities when a split into pieces is drawn: with 0 all are equally probable.
DRAWN_ALPHA = 0.3


@dataclass(frozen=True)
class Size:
    """The shape of a Marian model."""

    source_pieces: int
    target_pieces: int
    d_model: int
    heads: int
    ffn: int
    encoder_layers: int
    decoder_layers: int


# --- vocabulary -----------------------------------------------------------------------------------------------------


def make_vocabulary(folder: Path, pairs: list[Pair], size: Size, languages: tuple[str, str]) -> MarianTokenizer:
    """Train both SentencePiece models and write the joint vocab.json in opus-mt's format."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces: dict[str, None] = {}
    # The target is not normalised: the default rule would change "？" to "?".
    sides = (("source", 0, size.source_pieces, "nmt_nfkc"), ("target", 1, size.target_pieces, "identity"))
    for side, index, count, rule in sides:
        model = io.BytesIO()  # with a path, the file would include the path
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([pair[index] for pair in pairs]),
            model_writer=model,
            vocab_size=count,
            model_type="unigram",
            character_coverage=1.0 if index == 0 else 0.9995,
            required_chars=string.ascii_letters + string.digits + string.punctuation,  # numbers and foreign names
            normalization_rule_name=rule,
            bos_id=-1,
            eos_id=0,
            unk_id=1,
            num_threads=2,
            minloglevel=2,
            hard_vocab_limit=False,
        )
        (folder / f"{side}.spm").write_bytes(model.getvalue())
        spm = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm"))
        pieces.update((spm.id_to_piece(i), None) for i in range(2, spm.get_piece_size()))
    vocabulary = {"</s>": 0, "<unk>": 1}
    for piece in pieces:
        vocabulary[piece] = len(vocabulary)
    vocabulary["<pad>"] = len(vocabulary)
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False, indent=0), "utf-8")
    tokenizer = MarianTokenizer(
        source_spm=str(folder / "source.spm"),
        target_spm=str(folder / "target.spm"),
        vocab=str(folder / "vocab.json"),
        source_lang=languages[0],
        target_lang=languages[1],
        model_max_length=256,
    )
    tokenizer.save_pretrained(folder)
    return tokenizer


# --- model ----------------------------------------------------------------------------------------------------------


def make_model(vocabulary: int, size: Size, dropout: float) -> MarianMTModel:
    pad = vocabulary - 1
    config = MarianConfig(
        vocab_size=vocabulary,
        d_model=size.d_model,
        encoder_layers=size.encoder_layers,
        decoder_layers=size.decoder_layers,
        encoder_attention_heads=size.heads,
        decoder_attention_heads=size.heads,
        encoder_ffn_dim=size.ffn,
        decoder_ffn_dim=size.ffn,
        activation_function="swish",
        dropout=dropout,
        max_position_embeddings=256,
        scale_embedding=True,
        pad_token_id=pad,
        eos_token_id=0,
        bos_token_id=0,
        decoder_start_token_id=pad,
        forced_eos_token_id=0,
        init_std=size.d_model**-0.5,
    )
    model = MarianMTModel(config)
    for name, weight in model.named_parameters():
        if name.endswith(("proj.weight", "fc1.weight", "fc2.weight")):
            torch.nn.init.xavier_uniform_(weight)
    model.generation_config = GenerationConfig(
        num_beams=4,
        max_length=256,
        pad_token_id=pad,
        eos_token_id=0,
        decoder_start_token_id=pad,
        forced_eos_token_id=0,
        bad_words_ids=[[pad]],
    )
    return model


def encoder(tokenizer: MarianTokenizer) -> Encoder:
    """Encodes as the tokenizer does, many sentences at a time."""

    def encode_all(texts: Sequence[str], *, target: bool, drawn: bool = False) -> list[Ids]:
        spm = tokenizer.spm_target if target else tokenizer.spm_source
        ids, unknown, end = tokenizer.encoder, tokenizer.unk_token_id, tokenizer.eos_token_id
        how = {"enable_sampling": True, "alpha": DRAWN_ALPHA, "nbest_size": -1} if drawn else {}
        return [
            [*(ids.get(piece, unknown) for piece in row), end] for row in spm.encode(list(texts), out_type=str, **how)
        ]

    return encode_all


def start_from(model: MarianMTModel, folder: Path) -> None:
    """Load the weights of a finished translator, which must have the same layers."""
    weights = {name: torch.tensor(weight) for name, weight in marian_weights(folder).items()}
    if other := {name for name, p in model.named_parameters() if p.requires_grad} ^ weights.keys():
        sys.exit(
            f"--init has other layers than this recipe's translator: {', '.join(sorted(other)[:3])}. Name another model"
        )
    model.load_state_dict(weights, strict=False)


def _train_worker(
    rank: int, work: Path, size: Size, pairs: list[Pair], development: Sets, options: argparse.Namespace
) -> None:
    torch.set_num_threads(1)
    join(rank, work, options.workers)
    torch.manual_seed(options.seed)
    tokenizer = MarianTokenizer.from_pretrained(work / "vocabulary")
    device = torch.device(options.device)
    examples, alignments = _prepared(work, pairs, tokenizer)
    rows = producible(tokenizer, device)
    model = make_model(len(tokenizer.encoder), size, options.dropout).train().to(device)
    model.set_attn_implementation("eager")  # the only one that returns attention weights
    step, checkpoint = 0, work / "checkpoint.pt"
    if (work / "init").exists() and not checkpoint.exists():
        start_from(model, work / "init")
    if options.only_pieces:
        train_only(model, [tokenizer.encoder[piece] for piece in options.only_pieces])
    weight_decay = 0.0 if options.only_pieces else 0.01  # it would change the other pieces' embeddings
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=weight_decay, fused=True)
    average = {name: tensor.detach().clone() for name, tensor in model.named_parameters()}
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True, map_location=device)
        model.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        average, step = saved["average"], saved["step"]
    torch.manual_seed(options.seed + 100 * rank + step)
    pieces = sorted(tokenizer.encoder, key=tokenizer.encoder.__getitem__)
    prefixes = Prefixes(pieces, alignments) if options.augment else None
    altering = encoder(tokenizer) if options.augment else None

    def produced(part: int) -> Iterator[Batch]:
        seed, pad = options.seed + 1000 * rank + 7 * step + 101 * part, tokenizer.pad_token_id
        for batch in batches(examples, prefixes, pad, seed, options.batch, altering):
            yield Batch.of(*batch, alignments, pad)

    feed = prefetched(produced, options.feeders)
    began, last_saved, shown = time.time(), time.time(), torch.zeros((), device=device)
    log = (work / "train.log").open("a")
    while step < options.steps:
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(step, options.peak, options.steps, options.cooldown, options.warmup)
        chosen = None if step % ALL_ROWS_EVERY == 0 else rows
        cross, others = losses(model, next(feed).to(device), step, options.bf16, options.consistency, chosen)
        (cross + others).backward()
        share_gradients(list(model.parameters()), options.workers)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        step += 1
        shown.lerp_(cross.detach(), 0.02 if step > 50 else 0.2)
        if rank:
            continue
        if step % AVERAGED_EVERY == 0:
            decay = min(AVERAGE_DECAY, (1 + step) / (10 + step)) ** AVERAGED_EVERY
            with torch.no_grad():
                torch._foreach_lerp_(list(average.values()), [p for _, p in model.named_parameters()], 1 - decay)
        if step % 50 == 0:
            print(f"step {step} loss {shown.item():.3f} {time.time() - began:.0f} s", file=log, flush=True)
        if time.time() - last_saved > 120 or step == options.steps:
            _save_checkpoint(checkpoint, model, average, optimiser, step)
            last_saved = time.time()
        if development and (step % options.development_every == 0 or step == options.steps):
            averaged_model = with_weights(work, size, average, device)
            found = progress(averaged_model, tokenizer, encoder(tokenizer), development)
            print(f"step {step} {found}", file=log, flush=True)
    leave(options.workers)


def _prepared(work: Path, pairs: list[Pair], tokenizer: MarianTokenizer) -> tuple[list[Example], Alignments]:
    """The encoded pairs, and the alignments learned from them, which ``work`` keeps."""
    known = work / "alignments.npz"
    distinct = list(dict.fromkeys(pairs))
    examples = encode(distinct, encoder(tokenizer))
    if known.exists():
        alignments = Alignments.load(known)
    else:
        drawn = encoder(tokenizer)([source for source, _ in distinct], target=False, drawn=True)
        both = zip(examples, drawn, strict=True)
        alignments = Alignments([(ids, one.target) for one, other in both for ids in (*one.sources[:2], other)])
        alignments.save(known)
    at = {example.pair: example for example in examples}
    return [at[pair] for pair in pairs], alignments


@dataclass(frozen=True)
class Batch:
    """What a training step needs, as tensors."""

    source: torch.Tensor
    """[B, S] ids."""
    target: torch.Tensor
    """[B, T] ids."""
    alignment: torch.Tensor
    """[B, T, S] wanted attention; 0 where a side is padded."""
    present: torch.Tensor
    """Positions in the flattened target that aren't padded."""

    @classmethod
    def of(cls, sources: np.ndarray, targets: np.ndarray, alignments: Alignments, pad: int) -> Batch:
        wanted = alignments(sources, targets).astype(np.float32)
        wanted *= (targets != pad)[:, :, None] & (sources != pad)[:, None, :]
        present = np.flatnonzero(targets.ravel() != pad)
        return cls(*(torch.from_numpy(array) for array in (sources, targets, wanted, present)))

    def to(self, device: torch.device) -> Batch:
        tensors = (self.source, self.target, self.alignment, self.present)
        return self if device.type == "cpu" else Batch(*(one.to(device, non_blocking=True) for one in tensors))


@dataclass(frozen=True)
class Rows:
    """The rows of the output projection that a training computes."""

    ids: torch.Tensor
    """The pieces of the target side, in ascending order."""
    positions: torch.Tensor
    """The position in ``ids`` of each id of the vocabulary; 0 for the others."""


def producible(tokenizer: MarianTokenizer, device: torch.device) -> Rows:
    ids, spm = tokenizer.encoder, tokenizer.spm_target
    pieces = {ids[piece] for piece in map(spm.id_to_piece, range(spm.get_piece_size())) if piece in ids}
    chosen = torch.tensor(sorted(pieces))
    positions = torch.zeros(len(ids), dtype=torch.long)
    positions[chosen] = torch.arange(len(chosen))
    return Rows(chosen.to(device), positions.to(device))


def losses(
    model: MarianMTModel, batch: Batch, step: int, bf16: bool, consistency: float = 0.0, rows: Rows | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The cross-entropy of a batch per target token, and the weighted sum of its other losses.

    These are the guided attention's and, with ``consistency``, R-Drop's (Liang et al. 2021, there alpha): the divergence
    of two predictions of the same batch with different dropout. With ``rows``, the probabilities are among those pieces.
    """
    pad = model.config.pad_token_id
    weights = [guidance(step, last) for last in [False] * (model.config.decoder_layers - 1) + [True]]
    times = 2 if consistency else 1
    source, target = batch.source.repeat(times, 1), batch.target.repeat(times, 1)
    with torch.autocast(model.device.type, torch.bfloat16, enabled=bf16):
        output = model.model(
            input_ids=source,
            attention_mask=(source != pad).long(),
            decoder_input_ids=torch.cat([target.new_full((len(target), 1), pad), target[:, :-1]], 1),
            output_attentions=True,
        )
        projection = model.lm_head.weight if rows is None else model.lm_head.weight[rows.ids]
        hidden = output.last_hidden_state.view(times, -1, model.config.d_model)[:, batch.present]
        logits = F.linear(hidden, projection)
    wanted_ids = batch.target.flatten()[batch.present]
    if rows is not None:
        wanted_ids = rows.positions[wanted_ids]
    logs = F.log_softmax(logits.float(), -1)  # [times, tokens, pieces]
    exact = F.nll_loss(logs.flatten(0, 1), wanted_ids.repeat(times))
    cross = (1 - SMOOTHING) * exact - SMOOTHING * logs.mean()
    others = logs.new_zeros(())
    if consistency:
        first, second = logs
        both = ((first.exp() - second.exp()) * (first - second)).sum(-1).mean()
        others = consistency / 4 * both  # R-Drop's sum of two cross-entropies and of two divergences' halves, halved
    wanted = batch.alignment.repeat(times, 1, 1)
    guided = sum(
        -weight * (wanted * (heads[:, 0].float() + 1e-6).log()).sum()
        for weight, heads in zip(weights, output.cross_attentions, strict=True)
        if weight
    )
    return cross, others + guided / (times * len(batch.present))


def _save_checkpoint(
    path: Path, model: MarianMTModel, average: dict[str, torch.Tensor], optimiser: torch.optim.Optimizer, step: int
) -> None:
    """Replace the checkpoint atomically."""
    state = {"model": model.state_dict(), "average": average, "optimiser": optimiser.state_dict(), "step": step}
    partial = path.with_suffix(".partial")
    torch.save(state, partial)
    partial.rename(path)


def train(work: Path, size: Size, pairs: list[Pair], development: Sets, options: argparse.Namespace) -> None:
    """Train until ``options.steps``, resuming from ``work/checkpoint.pt`` if it exists.

    ``train.log`` has the loss, and every ``options.development_every`` steps the figures of the averaged weights on the
    ``development`` sets.
    """
    launch(_train_worker, work, options.workers, size, pairs, development, options)


def averaged(work: Path, size: Size) -> MarianMTModel:
    """The trained model with averaged weights, rounded so that half-precision files represent them exactly."""
    saved = torch.load(work / "checkpoint.pt", weights_only=True, map_location="cpu")
    return with_weights(work, size, {name: tensor.half().float() for name, tensor in saved["average"].items()})


def with_weights(
    work: Path, size: Size, weights: dict[str, torch.Tensor], device: torch.device | None = None
) -> MarianMTModel:
    """A model with the vocabulary in ``work`` and the given parameters, for inference on ``device`` or the CPU."""
    tokenizer = MarianTokenizer.from_pretrained(work / "vocabulary")
    model = make_model(len(tokenizer.encoder), size, 0.0).eval()
    if missing := {name for name, _ in model.named_parameters()} - weights.keys():
        sys.exit(f"the checkpoint in {work} lacks {', '.join(sorted(missing)[:3])}: use another --work")
    model.load_state_dict(weights, strict=False)
    return model.to(device)


# --- export ---------------------------------------------------------------------------------------------------------


def store_half(source: Path, destination: Path) -> None:
    """Rewrite an ONNX file with its large fp32 weights stored as fp16 and cast back on load.

    ONNX Runtime folds the casts when it loads the file, so the computation stays fp32. The file is half as large.
    """
    model = onnx.load(source)
    graph = model.graph
    casts = []
    for index, tensor in enumerate(graph.initializer):
        if tensor.data_type != TensorProto.FLOAT or math.prod(tensor.dims) < 256:
            continue
        name = tensor.name
        half = numpy_helper.from_array(numpy_helper.to_array(tensor).astype("float16"), name + "_fp16")
        graph.initializer[index].CopyFrom(half)
        casts.append(helper.make_node("Cast", [name + "_fp16"], [name], name=name + "_cast", to=TensorProto.FLOAT))
    for cast in reversed(casts):
        graph.node.insert(0, cast)
    onnx.save(model, destination)


def save(model: MarianMTModel, tokenizer_dir: Path, folder: Path) -> None:
    """Write the checkpoint in transformers' format, with its tokenizer."""
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    for path in tokenizer_dir.iterdir():
        shutil.copy(path, folder / path.name)


def export(model: MarianMTModel, tokenizer_dir: Path, work: Path) -> Path:
    """Export the merged, split and encoder graphs in fp32 with optimum, and return their folder."""
    from optimum.exporters.onnx import main_export

    checkpoint, exported = work / "hf", work / "onnx"
    shutil.rmtree(exported, ignore_errors=True)
    save(model, tokenizer_dir, checkpoint)
    main_export(str(checkpoint), output=str(exported), task="text2text-generation-with-past", do_validation=False)
    return exported
