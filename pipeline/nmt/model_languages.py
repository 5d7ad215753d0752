"""The languages of a translation model: which targets it has, and what it writes for them."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.errors import UsageError
from pipeline.languages import language_tag
from pipeline.languages.chinese import Convert, simplified
from pipeline.nmt.scripts import check_script, choose_code, needed_conversion
from pipeline.nmt.tokenizer import MarianTokenizer

UNDETERMINED = "und"
"""ISO 639-2 code for an undetermined language."""


class ModelLanguages:
    """What ``MarianModel`` knows of its languages."""

    tokenizer: MarianTokenizer
    languages: tuple[str | None, str | None]
    scripts: tuple[str | None, str | None]

    def target_code(self, target: str) -> str | None:
        """Return the target code that a multilingual model needs before the source; None for a bilingual model.

        Raises:
            UsageError: the model does not translate into ``target``, or does not write its script. Chinese is exempt:
                it can be converted to Hans or Hant.
        """
        codes: list[str] = self.tokenizer.target_codes
        if codes and target == UNDETERMINED:
            raise UsageError(
                f"this model translates into several languages; its targets are {', '.join(codes)}: "
                "choose one with --target"
            )
        if codes:
            return choose_code(target, codes)
        own = self.languages[1]
        if differs(target, own):
            raise UsageError(f"this model does not translate into {target!r}; it translates only into {own!r}")
        check_script(target, self.scripts[1])
        return None

    def conversion(self, target: str) -> Convert | None:
        """Return the conversion of translations into the script of ``target``; None if the model writes that script."""
        code = self.target_code(target)
        return needed_conversion(target, language_tag(code).script if code else self.scripts[1])

    def writing(self, target: str) -> Callable[[str], str]:
        """Rewrites the given translation of a term into ``target`` in the script that the model writes."""
        traditional = language_tag(target).script == "Hant" and self.conversion(target) is not None
        return simplified if traditional else str

    def check_languages(self, source: str, target: str) -> None:
        """Raise UsageError if the model's files name a different language pair."""
        for asked, has, side in ((source, self.languages[0], "from"), (target, self.languages[1], "into")):
            if differs(asked, has) and not (side == "into" and self.tokenizer.target_codes):
                raise UsageError(
                    f"the translation model translates from {self.languages[0] or 'an unnamed language'} into "
                    f"{self.languages[1] or 'an unnamed language'}, not {side} {asked}; "
                    "choose the languages with --source and --target, or another translation model"
                )
        self.target_code(target)


def differs(asked: str, own: str | None) -> bool:
    """Whether ``asked`` differs from ``own``, the language that the model's files name; False if they name none."""
    return own is not None and own != language_tag(asked).language
