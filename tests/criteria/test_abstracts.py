"""Topic models of abstracts: the conditional score against held-out likelihood (slow)."""

import arxiv
import left_to_right
import pytest
import test_real_text

import lksd

# of chains that did not converge
pytestmark = pytest.mark.filterwarnings("ignore::lksd.LksdWarning")
TOPICS, SPLITS, SWEEPS = (5, 20, 100), 5, 300
TRAINING, HELD_OUT = 1_500, 60
CLEAR, AGREEING = 3, 12  # standard errors; comparisons of 15 in which the directions agree


def models_of(split: int) -> tuple[dict[str, lksd.models.LDA], list[list[int]]]:
    """Topic models of one vocabulary, and other abstracts in its words."""
    training, texts = test_real_text.split_of(split)
    found = {
        str(count): test_real_text.by_tomotopy(training[:TRAINING], count, split, SWEEPS)
        for count in TOPICS
    }
    vocabulary = found[str(TOPICS[0])].vocabulary
    numbers = {word: number for number, word in enumerate(vocabulary.words)}
    documents = [[numbers[word] for word in words if word in numbers] for words in texts[:HELD_OUT]]
    return {name: model.over(vocabulary) for name, model in found.items()}, documents


@pytest.mark.slow
@pytest.mark.skipif(
    not arxiv.ABSTRACTS.exists(), reason=f"the abstracts are not at {arxiv.ABSTRACTS}"
)
def test_the_conditional_score_goes_the_way_of_held_out_likelihood():
    agree, contradicted = 0, []
    for split in range(SPLITS):
        models, x = models_of(split)
        losses = {
            name: lksd.estimate_scores(
                model, x, criteria="conditional", exact=False, seed=number
            ).losses[:, 0]
            for number, (name, model) in enumerate(models.items())
        }
        for (a, b), held in left_to_right.held_out(models, x).items():
            result = lksd.compare_pointwise(losses[a], losses[b])
            agree += (result.difference > 0) == (held.difference > 0)
            print(
                f"\nsplit {split} | {a} or {b} topics | likelihood z = {held.z:.1f} with "
                f"{held.particles} particles | conditional z = {result.statistic:.1f}, "
                f"{result.favours}"
            )
            if abs(held.z) > CLEAR and result.favours == ("P" if held.z > 0 else "Q"):
                contradicted.append((split, a, b))
    assert not contradicted
    assert agree >= AGREEING
