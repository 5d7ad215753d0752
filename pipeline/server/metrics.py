"""The figures of the server in Prometheus' format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from .service import Service


class Metrics(Collector):
    """Reads the figures from the service when they are asked for."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, service: Service, refused: Mapping[str, int]) -> None:
        """``refused``: requests that the guard has refused, by reason."""
        self._service, self._refused = service, refused
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def text(self) -> bytes:
        """All figures."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """One family a figure."""
        service, sessions = self._service, list(self._service.sessions.values())
        totals, refused = service.totals(), service.places.refused
        yield GaugeMetricFamily("speech_sessions", "Sessions in progress", len(sessions))
        spoken = GaugeMetricFamily("speech_sessions_by_source", "Sessions in progress by language", labels=["source"])
        configured = (languages.source for languages in service.languages.configured)
        for source in dict.fromkeys((*configured, *(session.config.languages.source for session in sessions))):
            spoken.add_metric([source], sum(session.config.languages.source == source for session in sessions))
        yield spoken
        yield GaugeMetricFamily("speech_sessions_max", "Sessions that may be in progress", service.limits.max_sessions)
        readers = sum(session.readers.count for session in sessions)
        yield GaugeMetricFamily("speech_viewers", "Readers of all sessions", readers)
        lags = [session.stats.lag_s for session in sessions]
        yield GaugeMetricFamily("speech_lag_seconds", "The longest lag of a session", max(lags, default=0.0))
        waiting = sum(session.intake.waiting_s for session in sessions)
        yield GaugeMetricFamily("speech_backlog_seconds", "Audio that waits to be taken by the stages", waiting)
        yield GaugeMetricFamily(
            "speech_recognitions_waiting", "Calls that wait for the recogniser", service.scheduler.waiting
        )
        yield CounterMetricFamily(
            "speech_refused_drafts",
            "Drafts left out since others needed the recogniser more",
            service.scheduler.refused_drafts,
        )
        yield GaugeMetricFamily("speech_recordings", "Uploaded recordings in progress", len(service.places.recordings))
        yield _by("speech_refused_sessions", "Sessions and recordings refused, by reason", "reason", refused)
        yield _by("speech_refused_requests", "Requests refused unread, by reason", "reason", self._refused)
        yield CounterMetricFamily(
            "speech_reader_resets", "Times that a reader was too slow and got the whole text anew", totals.resets
        )
        yield CounterMetricFamily("speech_served_sessions", "Sessions that have ended", service.ended.sessions)
        yield _by("speech_stage_seconds", "Working time of the stages", "stage", totals.busy_s)
        yield CounterMetricFamily("speech_audio_seconds", "Audio of all sessions", totals.audio_s)


def _by(name: str, meaning: str, label: str, values: Mapping[str, float]) -> CounterMetricFamily:
    """A counter with a value for each of a few labels."""
    family = CounterMetricFamily(name, meaning, labels=[label])
    for key, value in sorted(values.items()):
        family.add_metric([key], value)
    return family
