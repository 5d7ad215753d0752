"""Translation into several languages at once: the order of events, and languages that fail or are slow."""

import asyncio
import threading

import pytest

from pipeline import EndOfInput, MarianModel, PipelineEvent, Transcript
from pipeline.backends.nmt_options import NmtConfig
from pipeline.core.captions.states import OpenTexts
from pipeline.core.nmt.same_language import SameLanguageText
from pipeline.core.nmt.stage import NmtContext
from pipeline.core.nmt.targets import LateTargets, TranslationStage, _Gate
from pipeline.core.notices import TranslationLost
from pipeline.core.run.stats import PipelineStats
from pipeline.errors import ModelError
from pipeline.events import SourceSentence, SourceText, TargetText, Translation, Word
from tests.conftest import HANG_S, golden, make_model_dir

SENTENCES = [row["source"] for row in golden("tiny-marian")[:4]]
Input = Transcript | SourceText | SourceSentence


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The tiny model as two, which translate into "zh" and "de"; the second writes shorter sentences."""
    folder = make_model_dir(tmp_path_factory.mktemp("several") / "model", "merged")
    made = {"zh": MarianModel.load(folder), "de": MarianModel.load(folder, NmtConfig(max_tokens=5, cached_sentences=0))}
    for model in made.values():
        model.languages = (None, None)
    return made


def spoken(texts=SENTENCES):
    """What the sentence stage puts out for sentences that are each recognised in two steps."""
    found: list[Input] = []
    for number, text in enumerate(texts):
        half, heard_s = len(text) // 2, 3.0 * number
        found += [
            Transcript(number, heard_s, heard_s + 3, text, "en"),
            SourceText(number, "en", text[:half], steady=half, heard_s=heard_s + 1),
            SourceText(number, "en", text, steady=len(text), heard_s=heard_s + 2),
            SourceSentence(number, "en", text, heard_s, heard_s + 3, heard_s + 3),
        ]
    return found


class Run:
    """A ``TranslationStage`` that is fed by the test."""

    def __init__(self, models, *, live, capacity=1_000, unread=0, late=None):
        """``unread``: the number of events that wait for the reader at most."""
        self.inbox: asyncio.Queue[Input | EndOfInput] = asyncio.Queue()
        self.outbox: asyncio.Queue[PipelineEvent] = asyncio.Queue(unread)
        self.stats = PipelineStats()
        self.events: list[PipelineEvent] = []
        context = NmtContext(lambda: live, stats=self.stats)
        stage = TranslationStage(models, self.inbox, self.outbox, context, capacity=capacity, late=late)
        self.task = asyncio.create_task(stage.run())

    def feed(self, *items):
        for item in items:
            self.inbox.put_nowait(item)

    async def until(self, last):
        """Take events until ``last``. Fails if the stage ends before."""
        while not self.events or self.events[-1] != last:
            following = asyncio.create_task(self.outbox.get())
            await asyncio.wait({following, self.task}, return_when=asyncio.FIRST_COMPLETED)
            if not following.done() and self.outbox.empty():
                following.cancel()
                await self.task
                pytest.fail(f"the stage ended without {last}")
            self.events.append(await following)

    async def translated(self, count):
        """Take events until the last of ``count`` sentences is translated into Chinese."""
        while len(finals(self.events, "zh")) < count:
            self.events.append(await self.outbox.get())

    async def finished(self):
        """Give the end of input and return all events."""
        self.feed(EndOfInput(20.0))
        await self.until(EndOfInput(20.0))
        await self.task
        assert self.outbox.empty()
        return self.events


def run(models, items, *, live):
    async def work():
        running = Run(models, live=live)
        running.feed(*items)
        return await running.finished()

    return asyncio.run(work())


def of_language(events, language):
    return [event for event in events if isinstance(event, TargetText | Translation) and event.language == language]


def finals(events, language):
    return [event.text for event in of_language(events, language) if isinstance(event, Translation)]


def translator(model, target):
    return [model.translate(text, target=target) for text in SENTENCES]


class Failing:
    """A translator that fails at the sentences from ``number`` on, up to ``last``."""

    def __init__(self, model, number, error, last=99):
        self._model, self._numbers, self._error = model, range(number, last + 1), error

    def stream(self, request):
        for event in self._model.stream(request):
            yield event
            if request.sentence.sentence in self._numbers:
                raise self._error


class Refusing:
    """A translator that fails at once."""

    def stream(self, request):
        raise ModelError("out of memory")


class Blocked:
    """A translator that waits for ``go`` before each translation; a model that is slow, as far as the stage can tell."""

    def __init__(self, model):
        self._model = model
        self.waiting, self.go = threading.Event(), threading.Event()

    def stream(self, request):
        self.waiting.set()
        assert self.go.wait(HANG_S)
        yield from self._model.stream(request)


class BlockedAt(Blocked):
    """A translator that waits at some sentences."""

    def __init__(self, model, numbers):
        super().__init__(model)
        self._numbers = numbers

    def stream(self, request):
        return (super() if request.sentence.sentence in self._numbers else self._model).stream(request)


@pytest.fixture
def blocked(models):
    slow = Blocked(models["de"])
    yield slow
    slow.go.set()


@pytest.fixture
def ended_threads(blocked):
    """Every thread of a stage that a test starts ends with it, once its translator no longer waits."""
    before = set(threading.enumerate())
    yield
    blocked.go.set()
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith("NMT"):
            thread.join(60)
            assert not thread.is_alive(), f"{thread.name} outlives its stage"


def test_recordings_have_translations_in_the_order_of_the_languages(models):
    for order in (["zh", "de"], ["de", "zh"]):
        events = run({language: models[language] for language in order}, spoken(), live=False)
        expected: list[tuple[str, int]] = []
        for number in range(len(SENTENCES)):
            expected += [("en", number), *((language, number) for language in order)]
        found = [(e.language, e.sentence) for e in events if isinstance(e, SourceSentence | Translation)]
        assert found == expected
        steps = [(e.language, e.sentence) for e in events if isinstance(e, SourceText | TargetText)]
        assert list(dict.fromkeys(steps)) == expected  # no states of two texts mixed
        assert [key for at, key in enumerate(steps) if at == 0 or steps[at - 1] != key] == expected


@pytest.mark.parametrize("live", [False, True])
def test_each_language_has_the_events_of_a_run_into_it_alone(models, live):
    both = run(models, spoken(), live=live)
    assert [e for e in both if not isinstance(e, TargetText | Translation)] == [*spoken(), EndOfInput(20.0)]
    for language, model in models.items():
        assert finals(both, language) == translator(model, language)
    assert finals(both, "zh") != finals(both, "de")
    if not live:  # which drafts are made depends on how fast the texts come
        for language, model in models.items():
            alone = run({language: model}, spoken(), live=False)
            assert of_language(both, language) == of_language(alone, language)


async def test_live_text_is_passed_on_while_a_language_is_busy(models, blocked):
    running = Run({"zh": models["zh"], "de": blocked}, live=True)
    running.feed(*spoken())
    while finals(running.events, "zh") != translator(models["zh"], "zh"):
        running.events.append(await running.outbox.get())
    assert blocked.waiting.is_set()
    assert of_language(running.events, "de") == []
    assert [e for e in running.events if not isinstance(e, TargetText | Translation)] == spoken()
    blocked.go.set()
    assert finals(await running.finished(), "de") == translator(models["de"], "de")


@pytest.mark.parametrize("live", [False, True])
async def test_a_language_that_fails_is_reported_and_the_others_finish(models, live):
    failing = Failing(models["de"], 1, ValueError("out of\n memory"))
    running = Run({"de": failing, "zh": models["zh"]}, live=live)
    running.feed(*spoken())
    events = await running.finished()
    lost = TranslationLost("de", "out of memory")
    assert [event for event in events if isinstance(event, TranslationLost)] == [lost]
    assert finals(events, "zh") == translator(models["zh"], "zh")
    assert finals(events, "de") == [*translator(models["de"], "de")[:1], "", ""]
    assert of_language(events[events.index(lost) :], "de") == []
    assert (running.stats.languages, running.stats.lost_languages) == ({"zh"}, {"de": "out of memory"})


@pytest.mark.parametrize("live", [False, True])
async def test_a_failed_call_costs_one_sentence(models, live, caplog):
    failing = Failing(models["de"], 1, ValueError("out of\n memory"), last=2)
    running = Run({"de": failing, "zh": models["zh"]}, live=live)
    running.feed(*spoken())
    events = await running.finished()
    whole, texts = translator(models["de"], "de"), OpenTexts()
    assert finals(events, "zh") == translator(models["zh"], "zh")
    assert finals(events, "de") == [whole[0], "", "", whole[3]]
    for event in events:
        text = texts.push(event)
        if isinstance(event, Translation):
            assert text.text == event.text  # the tokens before the failure are withdrawn
            lost = event.language == "de" and event.sentence in (1, 2)
            assert event.error == ("out of memory" if lost else None)
    stats = running.stats
    assert (stats.failures, stats.lost_languages) == ({"NMT": "out of memory"}, {})
    assert [(each.start_s, each.reason) for each in stats.withheld] == [
        (3.0, "not translated into de"),
        (6.0, "not translated into de"),
    ]
    assert "out of memory" in stats.summary()
    assert [record.getMessage() for record in caplog.records] == [
        f"sentence {number} is not translated into de: out of memory" for number in (1, 2)
    ]


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.usefixtures("ended_threads")
async def test_the_failure_of_the_last_language_ends_the_run(models, live):
    first, second = ValueError("the first"), KeyError("the second")
    running = Run({"zh": Failing(models["zh"], 0, first), "de": Failing(models["de"], 1, second)}, live=live)
    *first_sentences, _, _, _, _ = items = spoken()
    running.feed(*first_sentences)
    # Either thread may be the quicker one: the sentence at which "de" fails for the third time waits.
    await running.until(TranslationLost("zh", "the first"))
    running.feed(*items[len(first_sentences) :])
    with pytest.raises(KeyError, match="the second"):
        await running.task
    events = running.events + [running.outbox.get_nowait() for _ in range(running.outbox.qsize())]
    assert [event for event in events if isinstance(event, TranslationLost)] == [TranslationLost("zh", "the first")]
    assert EndOfInput(20.0) not in events


@pytest.mark.parametrize("live", [False, True])
def test_the_failure_of_the_only_language_ends_the_run(models, live):
    with pytest.raises(ValueError, match="out of memory"):
        run({"de": Failing(models["de"], 0, ValueError("out of memory"))}, spoken(), live=live)


@pytest.mark.usefixtures("ended_threads")
async def test_a_language_too_far_behind_is_given_up(models, blocked):
    running = Run({"zh": models["zh"], "de": blocked}, live=True, capacity=4)
    for number in range(6):  # texts come as fast as the other language translates them
        heard = SourceSentence(number, "en", SENTENCES[number % len(SENTENCES)], heard_s=float(number))
        running.feed(heard)
        while len(finals(running.events, "zh")) <= number:
            running.events.append(await running.outbox.get())
        if number == 0:
            await asyncio.to_thread(blocked.waiting.wait)
    (lost,) = [event for event in running.events if isinstance(event, TranslationLost)]
    assert lost.language == "de"
    assert lost.reason.startswith("4 texts wait for it; choose a smaller model")
    blocked.go.set()
    events = await running.finished()
    assert of_language(events, "de") == []
    assert len(finals(events, "zh")) == 6


async def test_two_failing_languages_do_not_stop_the_others(models, blocked):
    failing = Blocked(Refusing())

    running = Run({"a": blocked, "b": failing, "zh": models["zh"]}, live=True, capacity=1, unread=1)
    for number, text in enumerate(SENTENCES[:2]):  # the second one waits for "a" and "b"
        running.feed(SourceSentence(number, "en", text))
        while len(finals(running.events, "zh")) <= number:
            running.events.append(await running.outbox.get())
        await asyncio.to_thread(blocked.waiting.wait)
        await asyncio.to_thread(failing.waiting.wait)
    running.feed(SourceSentence(2, "en", SENTENCES[2]))
    while "a" not in running.stats.lost_languages:  # its notice waits for the reader
        await asyncio.sleep(0)
    failing.go.set()
    while "b" not in running.stats.lost_languages:
        await asyncio.sleep(0)
    assert finals(await running.finished(), "zh") == translator(models["zh"], "zh")[:3]


async def test_the_only_language_is_not_given_up_but_waited_for(models, blocked):
    running = Run({"de": blocked}, live=True, capacity=1)
    running.feed(*spoken())
    await asyncio.to_thread(blocked.waiting.wait)
    blocked.go.set()
    events = await running.finished()
    assert finals(events, "de") == translator(models["de"], "de")
    assert not any(isinstance(event, TranslationLost) for event in events)


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.usefixtures("ended_threads")
async def test_a_cancelled_run_ends_at_once_and_leaves_nothing_behind(models, blocked, live):
    running = Run({"de": blocked, "zh": models["zh"]}, live=live)
    running.feed(*spoken())
    await asyncio.to_thread(blocked.waiting.wait)
    running.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running.task
    assert not blocked.go.is_set()  # it did not wait for the translator
    assert asyncio.all_tasks() == {asyncio.current_task()}
    blocked.go.set()
    assert models["de"].translate(SENTENCES[0])


@pytest.mark.usefixtures("ended_threads")
async def test_a_cancelled_run_leaves_nothing_of_an_added_language_behind(models, blocked):
    late = LateTargets(9)
    running = Run({"zh": models["zh"]}, live=True, late=late)
    running.feed(*spoken()[:12])
    await running.translated(3)
    assert late.add("de", blocked)
    await asyncio.to_thread(blocked.waiting.wait)
    running.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running.task
    assert asyncio.all_tasks() == {asyncio.current_task()}
    blocked.go.set()


async def test_a_language_that_is_added_gets_the_newest_sentences_before_and_all_after(models):
    late = LateTargets(2)
    running = Run({"zh": models["zh"]}, live=True, late=late)
    items = spoken()
    running.feed(*items[:12])
    await running.translated(3)
    assert late.add("de", models["de"])
    assert running.stats.languages == {"zh", "de"}
    running.feed(*items[12:])
    events = await running.finished()
    german = [event for event in of_language(events, "de") if isinstance(event, Translation)]
    texts = translator(models["de"], "de")
    assert {event.sentence: event.text for event in german} == {number: texts[number] for number in (1, 2, 3)}
    assert len(german) == 3
    before = [event.sentence for event in german if event.sentence < 3]
    assert before == [2, 1]  # what was said last comes first
    assert finals(events, "zh") == translator(models["zh"], "zh")
    assert not late.add("fr", models["de"])
    assert running.stats.lag_s == 0


async def test_what_is_said_now_does_not_wait_for_what_was_said_before(models):
    late = LateTargets(9)
    running = Run({"zh": models["zh"]}, live=True, late=late)
    items = spoken()
    running.feed(*items[:12])
    await running.translated(3)
    past = BlockedAt(models["de"], range(3))
    assert late.add("de", past)
    running.feed(*items[12:])
    while not finals(running.events, "de"):
        running.events.append(await running.outbox.get())
    assert {event.sentence for event in of_language(running.events, "de")} == {3}
    past.go.set()
    assert sorted(finals(await running.finished(), "de")) == sorted(translator(models["de"], "de"))


async def test_an_added_language_that_fails_is_reported_and_the_others_go_on(models):
    late = LateTargets(9)
    running = Run({"zh": models["zh"]}, live=True, late=late)
    items = spoken()
    running.feed(*items[:12])
    await running.translated(3)
    assert late.add("de", Refusing())
    await running.until(TranslationLost("de", "out of memory"))
    running.feed(*items[12:])
    assert finals(await running.finished(), "zh") == translator(models["zh"], "zh")
    assert running.stats.languages == {"zh"}


async def test_a_language_is_not_given_up_because_the_reader_is_slow():
    models = {"en": SameLanguageText("en"), "en-GB": SameLanguageText("en-GB")}
    running = Run(models, live=True, capacity=1, unread=1)
    words = tuple(Word(f" word{number}", number, number + 1) for number in range(9))  # an event for each
    text = "".join(word.text for word in words).strip()
    first, *others = [SourceSentence(number, "en", text, words=words) for number in range(4)]
    running.feed(first)
    await running.until(Translation(0, "en-GB", first.text, heard_s=first.heard_s))  # both languages have begun
    running.feed(*others)
    events = await running.finished()
    assert not [event for event in events if isinstance(event, TranslationLost)]
    assert finals(events, "en") == finals(events, "en-GB") == [text] * 4


async def test_what_comes_while_a_gate_opens_waits_for_what_came_before():
    queue: asyncio.Queue[PipelineEvent] = asyncio.Queue(1)
    gate = _Gate(queue)
    first, second, third, last = [Translation(number, "en", "") for number in range(4)]
    for event in (first, second, third):
        await gate.put(event)
    opening = asyncio.create_task(gate.release())
    await asyncio.sleep(0)
    putting = asyncio.create_task(gate.put(last))
    assert [await queue.get() for _ in range(4)] == [first, second, third, last]
    await asyncio.gather(opening, putting)


class Echo:
    """A translator that gives the text back."""

    def stream(self, request):
        number, text = request.sentence.sentence, request.sentence.text
        yield TargetText(number, "zh", text, len(text), complete=True)
        yield Translation(number, "zh", text)


@pytest.mark.parametrize("live", [False, True])
async def test_finished_sentences_are_counted_and_no_drafts(live):
    running = Run({"zh": Echo()}, live=live)
    running.feed(*spoken())
    await running.finished()
    assert running.stats.sentences == len(SENTENCES)


@pytest.mark.parametrize("live", [False, True])
async def test_a_translator_that_does_not_say_until_when_it_heard_does_not_look_late(live):
    running = Run({"zh": Echo()}, live=live)
    running.feed(*spoken())
    await running.finished()
    assert {event.heard_s for event in running.events if isinstance(event, Translation)} == {3.0, 6.0, 9.0, 12.0}
