"""The policies that ``bench live --compare`` compares: named changes of the configuration."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.config import PipelineConfig


@dataclass(frozen=True)
class Policy:
    """How a live run decides what to show and when."""

    name: str
    help: str
    changes: Mapping[str, Mapping[str, Any]]
    """Section → key → value, as in a configuration file."""

    def applied(self, config: PipelineConfig) -> PipelineConfig:
        """``config`` with the changes."""
        sections = {
            section: dataclasses.replace(getattr(config, section), **values) for section, values in self.changes.items()
        }
        return dataclasses.replace(config, **sections)


POLICIES: Mapping[str, Policy] = {
    policy.name: policy
    for policy in (
        Policy("none", "speech in progress is not recognised: text appears at pauses", {"drafts": {"enabled": False}}),
        Policy("drafts", "as configured: words on which two drafts agree are committed (LocalAgreement-2)", {}),
        Policy(
            "unmasked",
            "drafts, with all words of a draft translation shown",
            {"drafts": {"mask_words": 0, "mask_characters": 0}},
        ),
        Policy(
            "following", "drafts, and what is shown of a translation follows every draft", {"drafts": {"agreeing": 1}}
        ),
        Policy("word", "drafts, and translations are committed word by word", {"drafts": {"commit": "word"}}),
        Policy("no-context", "each segment recognised without the speech before it", {"asr": {"context_ms": 0}}),
        Policy("segments", "each segment translated by itself", {"sentences": {"long_pause_ms": 0}}),
    )
}


def some_policies(text: str) -> list[Policy]:
    """Argument type: names of policies separated by commas, or "all"."""
    if text == "all":
        return list(POLICIES.values())
    names = [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in POLICIES]:
        raise argparse.ArgumentTypeError(
            f"{unknown[0]!r} is not a policy; give names of {', '.join(POLICIES)} with a comma between two, or all"
        )
    return [POLICIES[name] for name in dict.fromkeys(names)]
