"""Models by name: a directory is used as it is; other names are fetched from the hub into the hub's own cache."""

from typing import TYPE_CHECKING

from .._door import door

if TYPE_CHECKING:
    from .cache import *
    from .firefox import *
    from .hub import *
    from .known import *
    from .packages import *
    from .progress import *
    from .resolve import *
    from .students import *
    from .url import *
else:
    __all__, __getattr__ = door(
        __name__,
        {
            "cache": "cached_commit digest_of locked megabytes repository_folder translate_read_errors",
            "firefox": "fetch_student",
            "hub": "drop_damaged fetch_known fetch_model",
            "known": (
                "FileSet HIBARI KNOWN_MODELS KOKORO KOKORO_STYLES KnownModel MOONSHINE SOUNDS Thresholds VOICES known_model "
                "known_translator"
            ),
            "packages": "MODELS assets copy_model forget_verified identify is_complete model_from_packages verified",
            "progress": "Progress progress_bar",
            "resolve": "ModelRef cached_model cached_snapshot local_directory local_model resolve_model",
            "students": "PREFIX cached_student drop_damaged_student is_student",
            "url": "fetch_known_file fetched_to",
        },
    )
