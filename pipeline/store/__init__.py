"""Models by name: a directory is used as it is; other names are fetched from the hub into the hub's own cache."""

from typing import TYPE_CHECKING

from .._door import door

if TYPE_CHECKING:
    from .cache import *
    from .firefox import *
    from .known import *
    from .listing import *
    from .packages import *
    from .progress import *
    from .resolve import *
    from .transfer import *
    from .url import *
else:
    __all__, __getattr__ = door(
        __name__,
        {
            "cache": "locked translate_read_errors",
            "firefox": "PREFIX cached_student drop_damaged_student fetch_student is_student",
            "known": (
                "HIBARI KNOWN_MODELS KOKORO KOKORO_STYLES KnownModel MOONSHINE SOUNDS Thresholds VOICES known_model "
                "known_translator"
            ),
            "listing": "FileSet",
            "packages": "MODELS assets copy_model forget_verified identify is_complete model_from_packages verified",
            "progress": "Progress progress_bar",
            "resolve": (
                "ModelRef cached_commit cached_model cached_snapshot drop_damaged fetch_known fetch_model "
                "local_directory local_model repository_folder resolve_model"
            ),
            "transfer": "digest_of megabytes",
            "url": "fetch_known_file fetched_to",
        },
    )
