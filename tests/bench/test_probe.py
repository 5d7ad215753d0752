"""Probes of the event loop and of memory."""

from __future__ import annotations

import asyncio
import mmap
import time

import pytest

from pipeline.bench.probe import IdleProbe, LoopProbe, LoopTimes, peak_mb, resident_mb
from tests.conftest import HANG_S


def test_lateness_is_counted_in_tenths_of_a_millisecond() -> None:
    probe = LoopProbe()
    for milliseconds in [0.05] * 98 + [4.0, 12.34]:
        probe.late(milliseconds / 1000)
    assert probe.longest_s == 0.01234
    assert probe.percentile_s(0.5) == pytest.approx(0.0001)
    assert probe.percentile_s(0.99) == pytest.approx(0.0041)
    assert probe.percentile_s(1.0) == 0.01234
    assert (probe.above(0.01), probe.above(0.003), probe.above(0.02)) == (1, 2, 0)


def test_a_probe_without_wake_ups_reports_zero() -> None:
    assert LoopProbe().percentile_s(0.99) == 0


async def wait_for_wake_ups(probe: LoopProbe, times: int) -> None:
    """Wait until the probe has woken up ``times`` more times."""
    until = probe.count + times
    while probe.count < until:
        await asyncio.sleep(0)


@pytest.mark.parametrize("works", [True, False])
def test_a_callback_that_blocks_the_loop_is_measured(works: bool) -> None:
    """CPU time of a callback counts as the loop's own work; sleeping does not."""

    async def block() -> LoopProbe:
        async with LoopProbe() as probe:
            await wait_for_wake_ups(probe, 1)
            began = time.thread_time()
            if works:
                while time.thread_time() < began + 0.05:
                    pass
            else:
                time.sleep(0.05)  # noqa: ASYNC251
            await wait_for_wake_ups(probe, 1)
        return probe

    probe = asyncio.run(block())
    assert probe.longest_s > 0.045
    assert probe.above(0.045) >= 1
    assert (probe.longest_work_s > 0.045) == works


def test_the_idle_process_is_probed_until_the_block_ends() -> None:
    async def work() -> tuple[LoopTimes, LoopTimes]:
        async with IdleProbe() as idle, LoopProbe() as own:
            before = idle.times
            await wait_for_wake_ups(own, 50)  # the idle process had the same 50 × 2 ms
        return before, idle.times

    before, after = asyncio.run(asyncio.wait_for(work(), HANG_S))
    assert before.asked == 0
    assert after.asked > 10
    assert after.longest_ms >= after.p99_ms > 0


def test_a_terminated_idle_process_reports_zero() -> None:
    async def work() -> LoopTimes:
        async with IdleProbe() as idle:
            idle._process.terminate()
            await idle._process.wait()
        return idle.times

    assert asyncio.run(asyncio.wait_for(work(), HANG_S)).asked == 0


def test_resident_memory_counts_only_touched_pages() -> None:
    # Mapped anew: the allocator might give pages that were touched and freed before.
    with mmap.mmap(-1, 200_000_000), mmap.mmap(-1, 50_000_000) as held:
        before_mb = resident_mb()
        held.write(bytes(50_000_000))
        assert 40 < resident_mb() - before_mb < 120  # the bytes may still be counted
    assert peak_mb() >= 50
