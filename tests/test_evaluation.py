"""How the recipes measure a translator: odd input, loops, beginnings of sentences, scores."""

from pathlib import Path

import pytest
from evaluation import Beginnings, Measured, Oddities, beginnings, loops, score, styled_sets, too_long, translation
from figures import checked_facts, other_rows, score_header, score_rows
from odd import LINES, odd_lines
from pairs import Data, held_out_phrases

from pipeline.backends.marian.model import MarianModel
from pipeline.backends.nmt_options import NmtConfig

ROOT = Path(__file__).resolve().parents[1]
PHRASES = list(held_out_phrases())[:12]


@pytest.fixture(scope="module")
def model():
    return MarianModel.load(ROOT / "models" / "demo" / "nmt-en-zh", NmtConfig(cached_sentences=0, beam_size=4))


def data(tests):
    return Data(training={}, development={}, tests={"phrases": tests}, test_phrases=tests[:3])


@pytest.mark.parametrize(("language", "side"), [("en", 0), ("zh", 1)])
def test_odd_lines_are_the_same_for_each_run_and_of_every_kind(language, side):
    sentences = [pair[side] for pair in held_out_phrases()]
    lines = odd_lines(sentences, language)
    assert lines == odd_lines(sentences, language)
    assert len(lines) == LINES
    assert len(set(lines)) > 0.75 * LINES
    assert all(line.strip() for line in lines)
    assert sum("и" in line for line in lines) > 5
    assert sum(line.isupper() for line in lines) > 300 or language == "zh"
    assert sum(any(map(str.isdigit, line)) for line in lines) > 250


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我们去火车站，我们去火车站，我们去火车站，我们去火车站，", True),
        ("I have a lot of a lot of a lot of a lot of time.", True),
        ("Very, very good.", False),
        ("1,000,000,000,000", False),
        ("哈哈哈", False),
        ("", False),
    ],
)
def test_a_loop_is_a_phrase_with_letters_four_times_in_sequence(text, expected):
    assert loops(text) is expected


def test_a_translation_of_half_a_sentence_may_be_half_as_long_again():
    reference = "我想明天早上去柏林。"  # ten characters
    assert not too_long("我想明天早上去", reference, 0.5, "zh")
    assert too_long("我想明天早上去柏", reference, 0.5, "zh")
    assert too_long("I want to go now", "I want to go to Berlin", 0.5, "en")


def test_beginnings_are_halves_without_a_mark_at_the_end(model):
    pairs = [
        ("When the train arrives, we will all go home.", "火车到了，我们就都回家。"),
        ("Yes, please.", "好的，请。"),
    ]
    found = beginnings(model, data(pairs), "en", "zh")
    assert found.sentences == 1  # the other one is too short
    ((half, made),) = found.examples
    assert half == "When the train arrives"
    assert made == translation(model, half, beams=1).text
    assert found.marked == made.endswith(("。", "？", "！"))
    assert found.long == too_long(made, pairs[0][1], 4 / 9, "zh")
    assert found.invented == max(found.marked, found.long)


def test_scores_are_of_what_the_pipeline_translates_in_both_styles(model):
    sets = styled_sets(data(PHRASES))
    assert {name: len(pairs) for name, pairs in sets.items()} == {
        "phrases": 12,
        "phrases, spoken style": 12,
        "phrasebook": 3,
    }
    assert sets["phrases, spoken style"][0][0] == PHRASES[0][0].lower().rstrip(".?").replace(",", "")
    wanted = [(source, translation(model, source, beams=1).text) for source, _ in PHRASES]
    found = score(model, {"own": wanted, "other": [(source, "书") for source, _ in PHRASES]}, "zh", (1, 4))
    assert found["own", 1]["bleu"] == 100
    assert found["other", 4]["bleu"] < 5
    assert set(found) == {("own", 1), ("own", 4), ("other", 1), ("other", 4)}


def test_a_comparison_has_a_column_for_each_translator_and_width():
    def measured(bleu):
        scores = {
            (name, beams): {"bleu": bleu + beams, "chrf": 20.0} for name in styled_sets(tested) for beams in (1, 4)
        }
        halves = Beginnings(300, marked=40, long=20, invented=50, examples=())
        return Measured(scores, halves, Oddities(2000, 7, 1, (("a", "b"),)), 0.1, 9.5, 14.7, {})

    tested = data(PHRASES)
    found = {"old": measured(30.0), "new": measured(40.0)}
    header, rows = score_header(found), score_rows(tested, found, {"phrases": (15.0, 13.0)})
    assert header == ("test set", "sentences", "old greedy", "old beam 4", "new greedy", "new beam 4")
    assert {len(row) for row in rows} == {len(header)}
    assert rows[0] == ("phrases", 12, "31.0 / 20.0", "34.0 / 20.0", "41.0 / 20.0", "44.0 / 20.0")
    assert rows[1][:3] == ("phrases: most similar training sentence", 12, "15.0 / 13.0")
    assert other_rows(found)[0] == ("half sentences with an invented ending", "50 of 300", "50 of 300")
    assert ("lines of odd input that end in a loop", "1 of 2000", "1 of 2000") in other_rows(found)


def test_figures_name_a_folder_without_a_translator(tmp_path):
    with pytest.raises(SystemExit, match=r"no such file: .*training\.json\. Expected a translator"):
        checked_facts(tmp_path, data(PHRASES))
