"""Which decoder runs which layout."""

from __future__ import annotations

from pipeline.nmt.decoder import Decoder
from pipeline.nmt.exported import CachedDecoder, OwnPastDecoder, PrefixDecoder
from pipeline.nmt.layout import Kind, Layout
from pipeline.nmt.session import give_back_memory
from pipeline.nmt.streaming import StreamingDecoder


def load_decoder(layout: Layout, threads: int = 1, *, use_cache: bool = True) -> Decoder:
    """The decoder for a layout, with its sessions open.

    Args:
        threads: of one run; 0 leaves the number to ONNX Runtime.
        use_cache: False feeds the whole prefix at every step instead of keeping decoder KV, to compare.

    Raises:
        ModelError: ONNX Runtime cannot load a file.
    """
    decoder = _decoder_class(layout.kind, use_cache)(layout, threads)
    give_back_memory()
    return decoder


def _decoder_class(kind: Kind, use_cache: bool) -> type[Decoder]:
    if kind is Kind.STREAMING:
        return StreamingDecoder
    if not use_cache or kind in (Kind.NO_PAST, Kind.ONE_FILE):
        return PrefixDecoder
    return OwnPastDecoder if kind is Kind.OWN_PAST else CachedDecoder
