"""Recordings by the thousand: what is done already, and who does the rest."""

from typing import TYPE_CHECKING

from .._door import door

if TYPE_CHECKING:
    from .claims import Claims
    from .cluster import translate_on_cluster
    from .objects import add_stand_ins, check_place, stand_in, with_remote
    from .outputs import SUFFIXES, Output, OutputName, language_tags, make_folder, named_outputs
    from .recording_run import translate_job
    from .recordings import Job, Options, check_unused, plan, read_manifest
    from .results import Result, plain_lines, results_table
    from .several import Run, translate_in_processes, translate_on
    from .shards import parse_shard
    from .speakers import speaker_names
    from .turns import POLL_S, Turns
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
