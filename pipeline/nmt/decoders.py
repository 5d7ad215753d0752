"""Selection of the decoder for a layout."""

from __future__ import annotations

from pipeline.nmt.decoder import Decoder
from pipeline.nmt.exported import CachedDecoder, OwnPastDecoder, PrefixDecoder
from pipeline.nmt.layout import Kind, Layout
from pipeline.nmt.session import give_back_memory
from pipeline.nmt.streaming import StreamingDecoder


def load_decoder(layout: Layout, threads: int = 1, *, use_cache: bool = True) -> Decoder:
    """Create the decoder for a layout and open its sessions.

    Args:
        threads: threads per run; 0 lets ONNX Runtime decide.
        use_cache: False feeds the whole prefix at every step instead of keeping decoder KV (for comparison).

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
