"""What whoever operates a session does while somebody speaks: corrects lines, masks words, names who speaks, pauses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ..core import Paused, PipelineEvent, Resumed
from .corrections import Corrections
from .intake import Intake
from .protocol import Correct, Mask
from .speakers import Speakers, speaker_name


class Operator:
    """The operator of one session."""

    def __init__(
        self,
        corrections: Corrections,
        intake: Intake,
        telling: asyncio.Lock,
        tell: Callable[[PipelineEvent], Awaitable[None]],
    ) -> None:
        """``tell``: tells all readers and the record an event, while ``telling`` is held."""
        self.paused = False
        """Whether silence is heard in the place of the audio that comes."""
        self.speakers = Speakers()
        self._corrections, self._intake = corrections, intake
        self._telling, self._tell = telling, tell

    async def correct(self, wanted: Correct | Mask) -> None:
        """Replace a finished text. Raises ProtocolError: see ``Corrections.checked``."""
        async with self._telling:
            await self._tell(self._corrections.checked(wanted))
            if isinstance(wanted, Correct) and wanted.speaker is not None:
                self.speakers.correct(wanted.sentence, speaker_name(wanted.speaker))

    def name_speaker(self, name: str) -> str:
        """Somebody speaks from the audio on that comes next; an empty name: nobody in particular. Return the name in one line.

        Raises:
            ProtocolError: see ``speaker_name``.
        """
        name = speaker_name(name)
        self.speakers.change(self._intake.arrived_s, name)
        return name

    async def pause(self, on: bool) -> None:
        """Hear silence from now on, or hear again; all are told, and the record has it. Idempotent."""
        async with self._telling:
            if on != self.paused and not self._intake.ended:
                self.paused = on
                await self._tell((Paused if on else Resumed)(self._intake.arrived_s))
