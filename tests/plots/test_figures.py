"""Figures show their data: the tests read labels, numbers and lines back from the figures."""

import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="figures need the extra viz")

from mini_bert import plots

TOKENS = ["[CLS]", "the", "cat", "[SEP]"]


def _texts(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def _records(count=5):
    return [{"step": i, "tokens": 100 * i, "loss": 9.0 - i, "smoothed_loss": 9.1 - i, "learning_rate": 1e-3,
             "grad_norm": 1.0} for i in range(1, count)] + [{"step": count, "tokens": 100 * count, "eval_loss": 4.0}]


def test_the_attention_figure_shows_the_requested_head_and_tokens():
    weights = np.zeros((2, 3, 4, 4))
    weights[1, 2] = np.eye(4)
    figure = plots.visualize_attention_patterns(weights, TOKENS, layer=1, head=2)
    axes = figure.axes[0]
    np.testing.assert_array_equal(axes.images[0].get_array(), np.eye(4))
    assert [label.get_text() for label in axes.get_xticklabels()] == TOKENS
    assert axes.get_title(loc="left") == "layer 1, head 2"


def test_the_attention_grid_has_one_matrix_per_head():
    weights = np.random.default_rng(0).random((2, 3, 4, 4))
    figure = plots.plot_attention_grid(weights, TOKENS)
    images = [axes.images[0].get_array() for axes in figure.axes if axes.get_title(loc="left")]
    np.testing.assert_array_equal(np.reshape(images, (2, 3, 4, 4)), weights)


def test_the_attention_grid_names_rows_on_the_left_and_columns_below():
    figure = plots.plot_attention_grid(np.full((2, 3, 2, 2), 0.5), ["one", "two"])
    names = [tuple([label.get_text() for label in labels] for labels in
                   (axes.get_xticklabels(), axes.get_yticklabels())) for axes in figure.axes[:6]]
    assert names[0] == ([], ["one", "two"])
    assert names[3] == (["one", "two"], ["one", "two"])
    assert names[5] == (["one", "two"], [])


def test_names_are_turned_only_where_they_have_no_room():
    few = plots.plot_gradient_flow({"embeddings": 1.0, "hidden_0": 2.0}).axes[0].get_xticklabels()[0]
    many = plots.plot_gradient_flow({f"hidden_{i}": 1.0 for i in range(30)}).axes[0].get_xticklabels()[0]
    assert (few.get_rotation(), many.get_rotation()) == (0, 90)


def test_training_curves_show_both_losses_and_the_baselines():
    figure = plots.plot_training_curves(_records(), {"unigram": 6.9})
    loss = figure.axes[0]
    lines = {line.get_label(): line.get_ydata() for line in loss.lines}
    assert list(lines["training"]) == [8.1, 7.1, 6.1, 5.1]
    assert list(lines["held out"]) == [4.0]
    assert "unigram" in _texts(figure)


def test_each_loss_of_an_objective_with_several_has_a_line_of_its_name():
    records = [{"step": i, "tokens": 100 * i, "loss": 5.0 - i, "losses": {"masked": 5.0 - i, "order": 0.7 - 0.1 * i},
                "eval_losses": {"order": 0.5}} for i in (1, 2)]
    figure = plots.plot_training_curves(records)
    lines = {line.get_label(): list(line.get_ydata()) for line in figure.axes[1].lines}
    assert lines == {"masked": [4.0, 3.0], "order": pytest.approx([0.6, 0.5]), "order, held out": [0.5, 0.5]}
    assert len(plots.plot_training_curves(_records()).axes) == 3


def test_training_curves_show_the_reference_and_its_band():
    band = {"tokens": [0, 500], "mean": [9, 5], "low": [8.5, 4.5], "high": [9.5, 5.5]}
    axes = plots.plot_training_curves(_records(), reference=band).axes[0]
    assert len(axes.collections) == 1
    assert {line.get_label() for line in axes.lines} >= {"training", "held out", "reference run"}


def test_a_reference_without_a_band_is_only_a_line():
    nan = float("nan")
    half = {"tokens": [0, 250, 500], "mean": [9, 6, 5], "low": [8.5, 5.5, nan], "high": [9.5, 6.5, nan]}
    band = plots.plot_training_curves(_records(), reference=half).axes[0].collections[0].get_paths()[0]
    assert band.get_extents().x1 == 250
    alone = half | {"low": [nan] * 3, "high": [nan] * 3}
    axes = plots.plot_training_curves(_records(), reference=alone).axes[0]
    assert len(axes.collections) == 0
    assert "reference run" in {line.get_label() for line in axes.lines}


def test_values_missing_in_the_log_are_gaps():
    records = [*_records(), {"step": 9, "tokens": None, "loss": 1.0}, {"step": 9, "tokens": "x", "eval_loss": 1.0},
               {"step": 10, "tokens": 1000, "loss": [1], "eval_loss": 3.0, "grad_norm": None}]
    loss = plots.plot_training_curves(records).axes[0]
    lines = {line.get_label(): list(line.get_ydata()) for line in loss.lines}
    assert lines["training"] == [8.1, 7.1, 6.1, 5.1]
    assert lines["held out"] == [4.0, 3.0]


def test_each_component_of_the_loss_has_a_line():
    axes = plots.plot_loss_components([10, 20], {"head": [0.75, 0.5], "attention": [0.25, 0.5]}).axes[0]
    assert {line.get_label(): list(line.get_ydata()) for line in axes.lines} == {"head": [0.75, 0.5],
                                                                                "attention": [0.25, 0.5]}


def test_gradient_flow_draws_norms_or_arrays_in_the_given_order():
    figure = plots.plot_gradient_flow({"layer_0": np.array([3.0, 4.0]), "layer_1": np.array([0.5])}, step=1000)
    axes = figure.axes[0]
    assert [bar.get_height() for bar in axes.patches] == [5.0, 0.5]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["layer_0", "layer_1"]
    assert "1,000" in axes.get_title(loc="left")


def test_gradients_of_zero_are_drawn_on_a_linear_axis():
    assert plots.plot_gradient_flow({"a": 0.0, "b": 1.0}).axes[0].get_yscale() == "linear"


def test_a_confusion_matrix_shows_shares_of_the_true_label():
    figure = plots.plot_confusion_matrix([[3, 1], [0, 0]], ["NOUN", "VERB"])
    assert _texts(figure)[:4] == ["75%", "25%", "0%", "0%"]


def test_layer_similarity_writes_its_numbers():
    assert _texts(plots.plot_layer_similarity([[1.0, 0.25], [0.25, 1.0]], ["a", "b"]))[1] == "0.25"


def test_probe_accuracy_has_one_line_per_model_and_one_level_per_baseline():
    figure = plots.plot_probe_accuracy(["0", "1"], {"model": [0.8, 0.9], "random init": [0.6, 0.6]},
                                       {"model": [0.01, 0.02]}, {"memory": 0.85})
    labels = [line.get_label() for line in figure.axes[0].lines]
    assert "model" in labels
    assert "random init" in labels
    assert "memory" in _texts(figure)


def test_a_landscape_of_two_directions_marks_the_model_at_the_origin():
    a = np.linspace(-1, 1, 5)
    figure = plots.plot_loss_landscape(a, a[:, None] ** 2 + a[None] ** 2, a)
    assert tuple(np.ravel(figure.axes[0].lines[0].get_xydata())) == (0, 0)


def test_pca_finds_the_plane_that_contains_the_points():
    rng = np.random.default_rng(0)
    plane = rng.standard_normal((40, 2)) * [5.0, 1.0]
    turned = plane @ np.linalg.qr(rng.standard_normal((6, 6)))[0][:2]
    places, title = plots.project(turned)
    assert "100%" in title
    distances = [np.linalg.norm(x[:, None] - x[None], axis=-1) for x in (plane, places)]
    np.testing.assert_allclose(distances[0], distances[1], atol=1e-9)


def test_a_projection_whose_library_is_missing_names_the_package_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(ModuleNotFoundError, match="pip install umap-learn"):
        plots.project(np.eye(4), "umap")


def test_points_have_names_and_groups():
    figure = plots.plot_embedding_projection(np.eye(4), names=list("abcd"), groups=["x", "x", "y", "y"])
    assert _texts(figure) == list("abcd")
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["x", "y"]


@pytest.mark.parametrize(("kind", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_equal_figures_are_saved_as_equal_files(tmp_path, kind, start):
    figure = plots.plot_gradient_flow({"a": 1.0, "b": 2.0})
    first = figure.save(tmp_path / f"one.{kind}").read_bytes()
    again = plots.plot_gradient_flow({"a": 1.0, "b": 2.0}).save(tmp_path / f"two.{kind}").read_bytes()
    assert first.startswith(start)
    assert first == again
    assert {path.name for path in tmp_path.iterdir()} == {f"one.{kind}", f"two.{kind}"}


def test_a_notebook_gets_a_png():
    assert plots.plot_spectrum({"W": [3.0, 1.0]})._repr_png_().startswith(b"\x89PNG")


def test_matplotlibs_global_settings_stay_unchanged():
    import matplotlib as mpl
    before = dict(mpl.rcParams)
    plots.plot_spectrum({"W": [3.0, 1.0]})
    assert dict(mpl.rcParams) == before
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


@pytest.mark.parametrize(("draw", "message"), [
    (lambda: plots.visualize_attention_patterns(np.eye(3), TOKENS), "4 names"),
    (lambda: plots.plot_attention_grid(np.eye(4), TOKENS), r"\(L, A, T, T\)"),
    (lambda: plots.plot_training_curves([{"step": 1}]), "no loss"),
    (lambda: plots.plot_gradient_flow({}), "no gradients"),
    (lambda: plots.plot_loss_components([], {}), "no shares"),
    (lambda: plots.plot_loss_landscape([0, 1], [1, 2, 3]), "shape of alphas"),
    (lambda: plots.project(np.eye(3), "mds"), "pca, tsne, umap"),
    (lambda: plots.plot_embedding_projection(np.eye(3), names=["a"]), "1 names"),
    (lambda: plots.plot_spectrum({"W": [1.0]}).save("x.gif"), ".png, .svg, .pdf"),
    (lambda: plots.plot_spectrum({"W": [1.0]}).save("/nowhere/at/all/x.png"), "no directory"),
])
def test_invalid_input_is_refused_with_a_clear_message(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()
