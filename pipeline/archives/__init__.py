"""Recordings by the thousand: what is done already, and who does the rest."""

from typing import TYPE_CHECKING

from .._door import door

if TYPE_CHECKING:
    from .claims import *
    from .cluster import *
    from .objects import *
    from .outputs import *
    from .recording_run import *
    from .recordings import *
    from .results import *
    from .several import *
    from .shards import *
    from .speakers import *
    from .turns import *
else:
    __all__, __getattr__ = door(
        __name__,
        {
            "claims": "Claims",
            "cluster": "translate_on_cluster",
            "objects": "add_stand_ins check_place stand_in with_remote",
            "outputs": "Output OutputName SUFFIXES language_tags make_folder named_outputs",
            "recording_run": "translate_job",
            "recordings": "Job Options check_unused plan read_manifest",
            "results": "Result plain_lines results_table",
            "several": "Run translate_in_processes translate_on",
            "shards": "parse_shard",
            "speakers": "speaker_names",
            "turns": "POLL_S Turns",
        },
    )
