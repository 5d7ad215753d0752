"""Options that several stages share or that no model has: drafts, sentences and the glossary."""

from __future__ import annotations

from dataclasses import dataclass

from ..bounds import CheckedOptions, within


@dataclass(frozen=True, kw_only=True)
class DraftOptions(CheckedOptions):
    """How speech in progress is recognised and translated in live runs."""

    # Whether speech in progress is recognised and translated; off: text appears at the next pause.
    enabled: bool = True
    # Milliseconds of speech before the first draft of a segment. Whisper invents words in less.
    first_ms: int = within(800, 100, 10_000)
    # Milliseconds of new speech between two drafts at least; more on a machine that needs longer for one.
    every_ms: int = within(600, 100, 10_000)
    # A word is steady when two drafts in a row agree on it and it ended this long before the end of their audio.
    margin_ms: int = within(400, 0, 5_000)
    # No word of a segment is steady before so many milliseconds of its speech have come, or half of them if it is a probable word: drafts
    # agree on wrong beginnings, too.
    steady_from_ms: int = within(3_000, 0, 10_000)
    # The three options below are for translators without a head trained to tell which source they translate, as Firefox's students have.
    # The last words of a draft translation are the least certain and are not shown. Their number, for languages
    # that separate words with spaces; 0 shows everything.
    mask_words: int = within(3, 0, 100)
    # Their number in characters, for other languages such as Chinese and Japanese.
    mask_characters: int = within(6, 0, 100)
    # Text that is shown of a draft translation is taken back when so many drafts in a row agree that it is another; 1 follows
    # every draft.
    agreeing: int = within(4, 1, 100)


@dataclass(frozen=True)
class SentenceOptions(CheckedOptions):
    """When a sentence ends, in milliseconds of audio."""

    # A pause of this length ends a sentence that has its final mark. A shorter one does not: the recogniser writes a full
    # stop at every pause, and only the next words show whether the sentence has ended.
    pause_ms: int = within(800, 0, 10_000)
    # One of this length is enough where Whisper is sure of the final mark.
    sure_pause_ms: int = within(500, 100, 10_000)
    # A pause of this length ends any sentence. 0 ends every sentence with its segment.
    long_pause_ms: int = within(2_000, 0, 10_000)
    # A sentence that has been spoken for this long ends at the next pause; an unfinished one is cut at a clause mark a quarter
    # before.
    max_sentence_ms: int = within(20_000, 1_000, 60_000)


@dataclass(frozen=True)
class QueueConfig(CheckedOptions):
    """Capacities of the bounded queues between stages."""

    # Chunks of audio that wait for voice activity detection, of the size in which they were fed.
    audio_chunks: int = within(50, 1, 100_000)
    # Segments of speech that wait for recognition.
    segments: int = within(8, 1, 10_000)
    # Transcripts that wait for the sentence stage.
    transcripts: int = within(8, 1, 10_000)
    # Changes of sentences that wait for translation.
    sentences: int = within(256, 1, 10_000)
    # Events that wait for the program that reads them.
    events: int = within(256, 1, 100_000)


@dataclass(frozen=True)
class SpeakerOptions(CheckedOptions):
    """Who speaks, told by the voice."""

    # Whether each sentence gets the number of its voice as its speaker (the extra speakers).
    auto: bool = False
    # A folder with segmentation.ort and embedding.ort of pyannote's speaker-diarization-community-1; None: the installed package.
    model: str | None = None
    # How alike the turns of one voice are at least, as a cosine: more makes more voices.
    threshold: float = within(0.5, 0, 1)


@dataclass(frozen=True)
class SoundOptions(CheckedOptions):
    """What is heard where nothing is said."""

    # Whether music and singing get captions of their own, such as [music] (the extra sounds).
    captions: bool = False


@dataclass(frozen=True)
class CaptionOptions(CheckedOptions):
    """What of the text is shown."""

    # A file of words and phrases that are masked wherever text is shown or written (docs/glossary.md); None: none.
    masked: str | None = None


@dataclass(frozen=True)
class GlossaryOptions(CheckedOptions):
    """Names and terms to recognise and translate as they are given."""

    # A TSV or CSV file of terms; None: no glossary. It is read again when it changes.
    file: str | None = None
    # Terms that the recogniser is told to expect in a stretch of speech: those said lately, then the first of the file.
    prompt_terms: int = within(10, 0, 50)
    # Correct words that sound and look like a term to it.
    correct: bool = True
