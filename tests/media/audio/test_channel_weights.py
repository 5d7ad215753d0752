"""Which channels are heard, block by block, without a recording."""

import numpy as np
import pytest

from pipeline.media.audio.channels import ChannelWeights, Floats, SpeakerWeights


def noise(*levels_db: float, blocks: int = 1) -> list[Floats]:
    """Blocks [1600, channels], in which each channel has noise of its own."""
    random = np.random.default_rng(0)
    scale = 0.1 * 10 ** (np.array(levels_db) / 20)
    return [(random.normal(0, 1, (1_600, len(levels_db))) * scale).astype(np.float32) for _ in range(blocks)]


def heard(weights: SpeakerWeights, blocks: list[Floats]) -> list[bool]:
    """In which blocks the speaker's channel is heard."""
    return [bool(weights.next(block).any()) for block in blocks]


def test_a_speaker_has_one_channel_and_none_if_it_is_missing():
    (both,) = noise(0, 0)
    assert [SpeakerWeights(channel).next(both).tolist() for channel in (0, 1, 2)] == [[1, 0], [0, 1], [0, 0]]
    assert SpeakerWeights(0).next(both[:, :1]).tolist() == [1]


def test_of_channels_with_the_same_sound_the_first_is_heard():
    same = [np.repeat(block, 2, axis=1) for block in noise(0, blocks=4)]
    assert [heard(SpeakerWeights(channel), same) for channel in (0, 1)] == [[True] * 4, [False] * 4]


def test_what_another_says_is_not_heard_and_a_soft_word_then_is():
    weights = SpeakerWeights(0)
    assert all(heard(weights, noise(0, -18, blocks=100))), "own speech, of which the other channel hears much"
    assert not any(heard(weights, noise(-30, 0, blocks=20))[4:]), "crosstalk"
    assert heard(weights, noise(-12, 0, blocks=4))[1:] == [True] * 3, "as soft as a word at a distance"
    assert not any(heard(weights, noise(-30, 0, blocks=4))[2:]), "crosstalk again, at once"


def test_how_much_crosstalk_there_is_is_learned_while_the_other_one_is_loud():
    weights = SpeakerWeights(0)
    heard(weights, noise(-30, 0, blocks=20))
    heard(weights, noise(-34, -24, blocks=200))  # a pause, in which the other one breathes
    assert heard(weights, noise(-18, 0, blocks=4))[2:] == [True] * 2


@pytest.mark.parametrize(("blocks", "learned"), [(7, False), (14, True)])
def test_crosstalk_is_taken_as_usual_after_a_second(blocks, learned):
    weights = SpeakerWeights(0)
    heard(weights, noise(-30, 0, blocks=blocks))
    assert heard(weights, noise(-16, 0, blocks=2))[1] == learned


def mixed(correlation: float, louder_db: float = 0.0) -> list[Floats]:
    """Six seconds of two channels whose sound is so alike."""
    both = np.array([[1, correlation], [0, np.sqrt(1 - correlation**2)]], np.float32)
    both[:, 1] *= 10 ** (louder_db / 20)
    return [block @ both for block in noise(0, 0, blocks=60)]


def chosen(weights: ChannelWeights, blocks: list[Floats]) -> list[float]:
    """The weights of the last block."""
    return [weights.next(block).tolist() for block in blocks][-1]


def test_of_channels_that_cancel_each_other_one_is_kept_until_the_other_is_far_louder():
    weights = ChannelWeights(np.full(2, 0.5, np.float32))
    assert chosen(weights, mixed(-1, -1)) == [1, 0]
    assert chosen(weights, mixed(-1, 5)) == [1, 0]
    assert chosen(weights, mixed(-1, 7)) == [0, 1]


def test_a_channel_that_was_heard_once_keeps_its_part_in_the_mix():
    weights = ChannelWeights(np.full(2, 0.5, np.float32))
    assert chosen(weights, noise(0, -200)) == [1, 1]
    assert chosen(weights, noise(0, 0)) == [0.5, 0.5]
    assert chosen(weights, noise(0, -200, blocks=60)) == [0.5, 0.5]


def test_a_channel_that_was_chosen_alone_stays_in_silence_until_the_channels_agree_more():
    weights = ChannelWeights(np.full(2, 0.5, np.float32))
    for blocks, single in (
        (mixed(-0.4), False),
        (mixed(-0.6), True),
        (noise(-200, -200, blocks=100), True),
        (mixed(-0.4), True),  # less opposite than what it began with, but not enough
        (mixed(-0.2), False),
    ):
        assert sorted(chosen(weights, blocks)) == ([0, 1] if single else [0.5, 0.5])
