"""Figures of a model in training on development sets: loss and BLEU."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from feed import Encoder, padded
from measure import bleu_chrf
from tatoeba import Pair
from transformers import MarianMTModel, MarianTokenizer

_ROWS = 50  # sentences translated at a time
_LONGEST = 80  # tokens of a translation


@torch.no_grad()
def progress(model: MarianMTModel, tokenizer: MarianTokenizer, encoder: Encoder, sets: dict[str, list[Pair]]) -> str:
    """A line with the cross-entropy per target token (nats) and the BLEU of greedy translations of each set."""
    pad, device, found = tokenizer.pad_token_id, model.device, []
    for name, pairs in sets.items():
        pairs = sorted(pairs, key=lambda pair: len(pair[0]))
        loss, count, translations = 0.0, 0, []
        for start in range(0, len(pairs), _ROWS):
            rows = pairs[start : start + _ROWS]
            source = torch.from_numpy(padded(encoder([text for text, _ in rows], target=False), pad)).to(device)
            target = torch.from_numpy(padded(encoder([text for _, text in rows], target=True), pad)).to(device)
            mask = (source != pad).long()
            before = torch.cat([target.new_full((len(target), 1), pad), target[:, :-1]], 1)
            logits = model(input_ids=source, attention_mask=mask, decoder_input_ids=before).logits
            loss += F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=pad, reduction="sum").item()
            count += int((target != pad).sum())
            ids = model.generate(source, attention_mask=mask, num_beams=1, max_length=_LONGEST)
            translations += tokenizer.batch_decode(ids, skip_special_tokens=True)
        bleu = bleu_chrf(translations, [wanted for _, wanted in pairs], tokenizer.target_lang)["bleu"]
        found.append(f"{name} loss {loss / count:.3f} BLEU {bleu:.1f}")
    return "development " + ", ".join(found)
