"""Estimates by smooth learners, standard errors by less biased ones."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import vstatkit as vs
from vstatkit.ensemble import prediction
from vstatkit.ensemble.retention import learner_bytes
from vstatkit.ensemble.stacking import allocate_learners
from vstatkit.exceptions import FileError
from vstatkit.inference.estimates import weighted_mean
from vstatkit.kernels.residual_trees import Stages
from vstatkit.results.labels import number_text
from vstatkit.storage.atomic_files import read_archive, write_archive
from vstatkit.storage.results_file import known_arrays
from vstatkit.variance.higher_orders import most_learners_compared

FORMULA = "y ~ a + b + c"
FIT = {"B": 200, "rng": 4, "n_jobs": 1}

pytestmark = pytest.mark.filterwarnings("ignore::vstatkit.MonteCarloWarning")


def line(seed):
    """Three predictors, one of which acts, weakly."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.uniform(size=(120, 3)), columns=list("abc"))
    frame["y"] = 1.5 * frame["a"] + rng.normal(size=120)
    return frame


@pytest.fixture(scope="module")
def data():
    """Data on which estimates come from one kind of learners."""
    return line(0)


@pytest.fixture(scope="module")
def new():
    return pd.DataFrame(
        np.random.default_rng(9).uniform(size=(30, 3)), columns=[*"abc"]
    )


@pytest.fixture(scope="module")
def res(data):
    return vs.fit(FORMULA, data, at=data.iloc[:4], target="truth", **FIT)


def fit_again(res, data, kernel, **how):
    """Fit the learners of a kernel by themselves."""
    trend, boost = getattr(kernel, "stages", Stages())
    names = ("min_samples_leaf", "max_features")
    own = {name: kernel.options[name] for name in names}
    own |= {"trend": "linear"} if trend else {}
    own |= {"boost": 1} if boost else {}
    fit = {"at": data.iloc[:4], "k": res.k, **FIT, **own, **how}
    return vs.fit(FORMULA, data, **fit)


@pytest.fixture(scope="module")
def smooth(res, data):
    return fit_again(res, data, res.recipe.centre.stack[0][0])


@pytest.fixture(scope="module")
def rough(res, data):
    return fit_again(res, data, res.recipe.task.kernel)


def agree(found, smooth, rough):
    """Estimates as one fit has them, standard errors as the other."""
    assert_allclose(found.params, smooth.params, rtol=1e-9, atol=1e-12)
    assert_allclose(found.bse, rough.bse, rtol=1e-9)
    assert not np.allclose(found.params, rough.params, rtol=1e-3)
    assert not np.allclose(found.bse, smooth.bse, rtol=1e-2)


def test_estimates_are_smooth_and_errors_those_of_less_bias(res, smooth, rough):
    assert res.info.aim.mix == "100% a linear trend"
    assert "a tree and a second tree" in res.info.aim.learner
    agree(res, smooth, rough)
    assert_allclose(res.cov_params(), rough.cov_params(), rtol=1e-9)
    moved = rough.values - rough.values.mean(axis=0) + smooth.values.mean(axis=0)
    assert_allclose(res.values, moved, rtol=1e-9)
    assert_allclose(res.components.zeta_k, rough.components.zeta_k, rtol=1e-9)


def test_one_kind_of_learners_may_do_for_both(data):
    exact = data.assign(y=3 * data["a"] + 2 * data["b"])
    fit = {"at": data.iloc[:3], "target": "truth", "max_features": 3, **FIT}
    res = vs.fit(FORMULA, exact, **fit)
    assert res.recipe.centre is None
    assert res.predictor.centre is None
    assert res.info.aim.mix is None
    assert res.info.aim.errors["estimates"] == res.info.aim.errors["standard errors"]
    text = " ".join(str(res.summary()).split())
    assert "of a mean of learners, each a linear trend, a tree and a second" in text
    assert "but not for the bias of such a learner." in text
    assert (
        "The least biased learner whose error is within two standard errors, and 25%"
        in text
    )
    assert "stack" not in text


def test_a_mix_has_learners_of_each_kind_by_their_shares(new):
    """Written out: the first learners of one kind, the next of another."""
    data = line(1)
    res = vs.fit(FORMULA, data, at=data.iloc[:4], target="truth", **FIT)
    mix = res.recipe.centre.stack
    assert len(mix) == 3
    names = ("82% a tree, with leaves of 15 rows", "9% a linear trend; 9% others")
    assert all(name in res.info.aim.mix for name in names)
    fits = [fit_again(res, data, kernel) for kernel, _ in mix]
    shares = np.array([share for _, share in mix])
    counts = allocate_learners(shares, 200)
    ends = np.cumsum(counts)
    pairs = list(zip(fits, ends - counts, ends, strict=True))
    values = np.concatenate([fit.values[a:b] for fit, a, b in pairs])
    assert_allclose(res.params, values.mean(axis=0), rtol=1e-9)
    X = res.predictor.rows(new)[0]
    H = np.concatenate([fit.predictor.values(X)[a:b] for fit, a, b in pairs])
    assert_allclose(res.predict(new), H.mean(axis=0), rtol=1e-9)
    X = res.predictor.rows(data)[0]
    H = np.concatenate([fit.predictor.values(X)[a:b] for fit, a, b in pairs])
    out = np.where(res.design.counts(0, 200) > 0, np.nan, 1.0)
    assert_allclose(res.fittedvalues, np.nanmean(out * H, axis=0), rtol=1e-9)
    curve = res.partial_dependence("a", grid=[0.2, 0.8]).results.params
    moved = [data.assign(a=value) for value in (0.2, 0.8)]
    assert_allclose(curve, [res.predict(one).mean() for one in moved], rtol=1e-9)


def test_effects_and_fitted_values_are_smooth(res, smooth, rough):
    assert_allclose(res.effects["estimate"], smooth.effects["estimate"], rtol=1e-9)
    assert_allclose(res.effects["std_error"], rough.effects["std_error"], rtol=1e-9)
    assert_array_equal(res.fittedvalues, smooth.fittedvalues)
    assert res.rsquared == smooth.rsquared
    assert res.scores.table == smooth.scores.table


@pytest.fixture(params=[2048, 10])
def many(request, monkeypatch):
    """Rows from which tasks estimate where they predict."""
    monkeypatch.setattr(prediction, "MANY_ROWS", request.param)


@pytest.mark.usefixtures("many")
def test_predictions_of_new_data(res, smooth, rough, new):
    found = res.get_prediction(new)
    assert_allclose(found.predicted_mean, smooth.predict(new), rtol=1e-9)
    assert_allclose(found.se_mean, rough.get_prediction(new).se_mean, rtol=1e-9)
    assert_array_equal(res.predict(new), smooth.predict(new))
    X = res.predictor.rows(new)[0]
    assert_array_equal(res.predictor.mean(X), smooth.predictor.mean(X))


def test_new_observations_are_bounded_about_the_estimate(res, rough, new):
    """Written out: moved learners without each row, and smooth out-of-bag errors."""
    H = rough.predictor.values(rough.predictor.rows(new)[0])
    H = H - H.mean(axis=0) + res.predict(new).to_numpy()
    seen = res.design.counts(0, res.B) > 0
    without = np.stack([H[~seen[:, i]].mean(axis=0) for i in range(120)])
    sizes = np.abs(res.resid.to_numpy())[:, None]
    low = np.sort(without - sizes, axis=0)[int(np.floor(0.1 * 121)) - 1]
    high = np.sort(without + sizes, axis=0)[int(np.ceil(0.9 * 121)) - 1]
    frame = res.get_prediction(new).summary_frame(alpha=0.1, obs_method="jackknife+")
    assert_allclose(frame["obs_ci_lower"], low)
    assert_allclose(frame["obs_ci_upper"], high)


@pytest.fixture(scope="module", params=["training rows", "fresh rows"])
def rows(request, data, new):
    some = new if request.param == "fresh rows" else data
    return some.assign(g=some["b"] > 0.5)


@pytest.mark.parametrize("by", [None, "g"])
def test_averages(res, smooth, rough, rows, by):
    fits = (res, smooth, rough)
    found, a, b = (one.avg_predictions(rows, by=by).results for one in fits)
    agree(found, a, b)
    found, a, b = (one.avg_effects(data=rows, by=by).results for one in fits)
    assert_allclose(found.params, a.params, rtol=1e-9)
    assert_allclose(found.bse, b.bse, rtol=1e-9)


def test_averages_for_the_population(res, rough, data):
    """Written out: rows count by what is predicted for them, which has moved."""
    H = rough.predictor.values(rough.predictor.rows(data)[0])
    step = res.predict(data).to_numpy() - H.mean(axis=0)
    own = rough.recipe.oob.mean[:, 0] + step
    h, Z, n = (H + step).mean(axis=1), res.design.counts(0, res.B) > 0, 120
    without = np.array([h[~Z[:, u]].mean() for u in range(n)])
    c = np.sqrt((n - 1) / n) * (h.mean() - without)
    g = (own - without) / n * np.sqrt(n / (n - 1))
    sample, population = (
        res.avg_predictions(se=se).results.components.sampling[0]
        for se in ("sample", "population")
    )
    assert population - sample == pytest.approx(np.sum(g**2) + 2 * np.sum(c * g))


@pytest.mark.parametrize("se", ["sample", "population"])
def test_curves(res, smooth, rough, se):
    at = {"grid": [0.2, 0.5, 0.8], "se": se}
    found, a, b = (one.partial_dependence("a", **at) for one in (res, smooth, rough))
    assert_allclose(found.results.params, a.results.params, rtol=1e-9)
    if se == "sample":  # rows are moved, too
        assert_allclose(found.results.bse, b.results.bse, rtol=1e-9)


def test_questions_about_predictors_are_those_to_less_biased_learners(res, rough):
    asked = (
        lambda one: one.importance(),
        lambda one: one.importance(learners=150),  # by those that were kept
    )
    for ask in asked:
        found, expected = ask(res), ask(rough)
        columns = found.frame.select_dtypes("number").columns
        assert_allclose(found.frame[columns], expected.frame[columns], rtol=1e-9)
    losses = [one.importance().loss for one in (res, rough)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)
    assert f"with all predictors: {losses[1]:.4g}, 120 rows" in str(res.importance())


@pytest.mark.parametrize("seed", [4, 5])
def test_compared_fits_differ_as_their_estimates_do(res, data, new, seed):
    """Whether the second is fitted again, to the subsamples of the first, or not."""
    other = vs.fit(FORMULA, data, kernel="ols", k=res.k, B=200, rng=seed, n_jobs=1)
    apart = other.predict(new) - res.predict(new)
    found = vs.compare(other, res, at=new)
    assert found.frame["refitted"].item() == (seed == 5)
    assert_allclose(found.differences.params, apart, rtol=1e-9, atol=1e-12)
    found = vs.compare(res, other, at=new)
    # Of other subsamples the mean of a regression differs by its Monte Carlo error.
    close = 1e-12 if seed == 4 else 0.1
    assert_allclose(found.differences.params, -apart, rtol=1e-9, atol=close)


def test_compared_fits_are_told_apart(res, smooth, rough, new):
    assert vs.compare(res, rough, new).question == "target='truth' - target='mean'"
    found = vs.compare(smooth, rough, new)
    assert found.question == "the first fit - the second fit"
    assert found.differences.info.title == "the first fit minus the second fit"


def test_more_learners_are_centred_anew(res, data):
    few = vs.fit(FORMULA, data, at=data.iloc[:4], target="truth", **{**FIT, "B": 120})
    grown = few.more(200)
    assert_allclose(grown.values, res.values, rtol=1e-12, atol=1e-12)
    assert_array_equal(grown.predict(data), res.predict(data))
    assert_array_equal(grown.fittedvalues, res.fittedvalues)
    assert_allclose(grown.effects["std_error"], res.effects["std_error"], rtol=1e-9)


def test_the_bootstrap_repeats_what_errors_come_from(res, smooth, rough):
    found, own = (one.bootstrap(20, B=50, rng=1, n_jobs=1) for one in (res, rough))
    step = smooth.params.to_numpy() - rough.params.to_numpy()
    assert_allclose(found.estimates, own.estimates + step, rtol=1e-9, atol=1e-12)
    note = "The learners behind the standard errors were refitted"
    assert [note in str(one.summary()) for one in (found, own)] == [True, False]


def test_files_hold_both_kinds_of_learners(res, new, tmp_path):
    path = tmp_path / "res.npz"
    res.save(path)
    loaded = vs.load(path)
    assert_array_equal(loaded.predict(new), res.predict(new))
    assert_allclose(loaded.get_prediction(new).se_mean, res.get_prediction(new).se_mean)
    assert str(loaded.summary()) == str(res.summary())


def test_files_of_the_layout_before_are_read(rough, res, data, tmp_path):
    """There estimates and standard errors came from the same learners."""
    path = tmp_path / "res.npz"
    rough.save(path)
    document, arrays = read_archive(path, known_arrays())
    aim = vars(res.info.aim) | {"bias": [], "bias_error": []}
    del aim["mix"], document["predictor"]["centred_at"]
    document["format"], document["info"]["aim"] = 6, aim
    write_archive(path, document, arrays)
    loaded = vs.load(path)
    assert loaded.info.aim.mix is None
    assert_array_equal(loaded.predict(data), rough.predict(data))


def damaged(change):
    """Change what a file says of the learners that estimates come from."""
    return lambda document, arrays: change(document["predictor"]["centred_at"], arrays)


DAMAGES = {
    "of no known kind": damaged(lambda centre, _: centre.update(kind="lines")),
    "is not known": lambda document, _: document["predictor"].update(centred_at=None),
    "the field 'scale'": damaged(lambda centre, _: centre.update(scale="1")),
    "`centred_at`": damaged(lambda centre, _: centre.update(more=1)),
    "numbers of trees are missing": damaged(
        lambda _, arrays: arrays.pop("centre_stage_trees")
    ),
}


@pytest.mark.parametrize("message", DAMAGES)
def test_damaged_files_are_refused(res, tmp_path, message):
    path = tmp_path / "res.npz"
    res.save(path)
    document, arrays = read_archive(path, known_arrays())
    DAMAGES[message](document, arrays)
    write_archive(path, document, arrays)
    with pytest.raises(FileError, match=message):
        vs.load(path)


def test_learners_of_classes_have_no_others_beside_them(res, data, tmp_path):
    path, classes = tmp_path / "res.npz", tmp_path / "classes.npz"
    res.save(path)
    told = data.assign(y=np.where(data["y"] > 1, "high", "low"))
    vs.fit(FORMULA, told, B=200, rng=1).save(classes)
    document, arrays = read_archive(classes, known_arrays())
    other, others = read_archive(path, known_arrays())
    document["predictor"]["centred_at"] = other["predictor"]["centred_at"]
    found = {name: one for name, one in others.items() if name.startswith("centre_")}
    write_archive(classes, document, arrays | found)
    with pytest.raises(FileError, match="classes have one kind"):
        vs.load(classes)


def test_results_that_keep_too_few_learners_do_not_predict(data, new):
    B = most_learners_compared(120) + 10  # so many are kept in any case
    few = {**FIT, "target": "truth", "keep_learners": False, "B": B}
    res = vs.fit(FORMULA, data, at=data.iloc[:4], **few)
    assert res.recipe.centre is not None
    with pytest.raises(ValueError, match="were kept"):
        res.predict(new)


def test_all_of_the_other_learners_are_kept_or_none(data, monkeypatch):
    monkeypatch.setattr("vstatkit.ensemble.retention.KEEP_BYTES", 20_000)
    monkeypatch.setattr("vstatkit.ensemble.retention.KEEP_SHARE", 0.0)
    with pytest.warns(vs.VstatkitWarning, match="of 200 learners only 0 are kept"):
        res = vs.fit(FORMULA, data, target="truth", **FIT)
    assert len(res.predictor.learners) == 200  # so many are compared with each other
    assert res.predictor.n_kept == 0


@pytest.mark.filterwarnings("ignore:of 2,010 learners only:vstatkit.VstatkitWarning")
def test_small_learners_are_not_kept_without_the_large_ones(data, monkeypatch):
    B = most_learners_compared(120) + 10
    monkeypatch.setattr("vstatkit.ensemble.retention.KEEP_SHARE", 0.0)
    fits = []
    for size in (400 * B, 2**30):
        monkeypatch.setattr("vstatkit.ensemble.retention.KEEP_BYTES", size)
        fits.append(vs.fit(FORMULA, data, target="truth", **{**FIT, "B": B}).predictor)
    few, all_ = fits
    assert learner_bytes(all_.centre.learners) < 400 * B < learner_bytes(all_.learners)
    assert (len(all_.centre.learners), len(few.centre.learners)) == (B, 0)


def test_complete_ensembles_are_their_own_centre(data):
    few = data.iloc[:12]
    res = vs.fit(FORMULA, few, k=9, B="complete", replace=False, target="truth")
    assert res.recipe.centre is None
    assert res.info.aim.mix is None


def test_a_mean_has_effects_of_zero():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(100, 3)), columns=["a", "b", "y"])
    res = vs.fit("y ~ a + b", frame, B=100, rng=3, target="truth")
    assert res.info.aim.mix == "100% a mean"
    assert_array_equal(res.effects["estimate"], [0, 0])
    assert (res.effects["std_error"] > 0).all()


def test_an_offset_costs_no_digits(data, new):
    exact = data.assign(y=np.round(data["y"] * 2**12) / 2**12)
    fit = {"at": data.iloc[:4], "target": "truth", **FIT, "B": 1000}
    offset, rows = 2.0**30, pd.concat([new] * 20)
    far, near = (
        vs.fit(FORMULA, exact.assign(y=exact["y"] + much), **fit)
        for much in (offset, 0.0)
    )
    asked = (
        lambda one: one.params,
        lambda one: one.get_prediction(new).predicted_mean,
        lambda one: one.avg_predictions(rows, se="sample").results.params,
        lambda one: one.partial_dependence("a", se="sample").results.params,
    )
    for ask in asked:
        # Eight units in the last place of numbers of this size.
        assert_allclose(ask(far) - offset, ask(near), rtol=0, atol=2**-20)


def test_means_that_cancel_are_zero():
    values = np.array([[0.1, 0.1, 1e-20], [0.2, 0.2, 3e-20], [-0.3, -0.3 + 1e-13, 0]])
    mean = weighted_mean(values, None)
    assert mean[0] == 0
    assert mean[1] == pytest.approx(1e-13 / 3, rel=1e-2, abs=0)
    assert mean[2] == pytest.approx(4e-20 / 3, abs=0)


def test_the_summary_says_where_numbers_come_from(res):
    text = " ".join(str(res.summary()).split())
    errors = res.info.aim.errors
    assert "estimates are means of a stacked ensemble: 100% a linear trend." in text
    assert f"with less bias, each {res.info.aim.learner}, fitted to k = 75" in text
    numbers = [number_text(errors[one]) for one in ("estimates", "standard errors")]
    numbers = "estimates {}, standard errors {}, both".format(*numbers)
    assert f"pilot ensembles: {numbers}" in text
    assert "of the best was chosen for the standard errors; the stack has" in text
