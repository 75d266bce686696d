import numpy as np
import pytest

from vstatkit.sampling.streams import Purpose, resolve_seed, stream


def test_streams_depend_on_seed_index_and_purpose_alone():
    draw = {
        (seed, index, purpose): stream(seed, index, purpose).random()
        for seed in (1, 2)
        for index in (0, 1)
        for purpose in Purpose
    }
    assert len(set(draw.values())) == len(draw)
    assert stream(1, 0, Purpose.GROUP).random() == draw[1, 0, Purpose.GROUP]


def test_a_generator_gives_one_seed_and_moves_on():
    generator = np.random.default_rng(3)
    first, second = resolve_seed(generator), resolve_seed(generator)
    assert first != second
    assert resolve_seed(np.random.default_rng(3)) == first


def test_no_seed_takes_fresh_entropy():
    assert resolve_seed(None) != resolve_seed(None)


@pytest.mark.parametrize(
    ("rng", "error"), [(-1, ValueError), (True, TypeError), ("7", TypeError)]
)
def test_bad_seeds_are_refused(rng, error):
    with pytest.raises(error, match="`rng` must be"):
        resolve_seed(rng)


def test_large_seeds_are_all_different():
    seeds = [2**63, 2**63 + 1000, 2**64 - 1]
    assert len({stream(seed, 0, Purpose.LEARNER).random() for seed in seeds}) == 3
