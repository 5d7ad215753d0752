"""Which decoder runs which layout."""

from __future__ import annotations

from pipeline.nmt.decoder import Decoder
from pipeline.nmt.exported import CachedDecoder, OwnPastDecoder, PrefixDecoder
from pipeline.nmt.layout import Kind, Layout
from pipeline.nmt.streaming import StreamingDecoder


def load_decoder(layout: Layout, threads: int = 1, *, use_cache: bool = True) -> Decoder:
    """The decoder for a layout, with its sessions open.

    Args:
        threads: of one run; 0 leaves the number to ONNX Runtime.
        use_cache: False feeds the whole prefix at every step instead of keeping decoder KV, to compare.

    Raises:
        ModelError: ONNX Runtime cannot load a file.
    """
    if layout.kind is Kind.STREAMING:
        return StreamingDecoder(layout, threads)
    if not use_cache or layout.kind in (Kind.NO_PAST, Kind.ONE_FILE):
        return PrefixDecoder(layout, threads)
    return (OwnPastDecoder if layout.kind is Kind.OWN_PAST else CachedDecoder)(layout, threads)
