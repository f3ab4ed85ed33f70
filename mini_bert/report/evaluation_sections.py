"""The charts and tables of each part of an evaluation, made from the part's JSON."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..evaluation.statistics import Interval
from .bars import Bar, bar_chart
from .chart import Line, line_chart
from .heatmap import heat_map
from .page import paragraph, table

Details = Mapping[str, Any]
MODEL, RANDOM = "model", "random init"


def _bar(figure: Details) -> Bar:
    return Bar(figure["mean"], figure["low"], figure["high"])


def _percent(figure: Details) -> str:
    return Interval(**figure).shown()


def _layer_names(layers: list[str]) -> list[str]:
    """Short names: emb, 1, 2, ..., and final for the output of the last LayerNorm."""
    short = {"embeddings": "emb", "final_hidden": "final", "mix": "mix"}
    return [short.get(name, str(int(name.rpartition("_")[2]) + 1) if name[-1].isdigit() else name) for name in layers]


def _masked(details: Details) -> list[str]:
    places = [(start, loss) for start, loss, count in details["by_position"] if count]
    chart = line_chart([Line("loss", [start for start, _ in places], [loss for _, loss in places])],
                       x_label="position in the sequence", y_label="loss",
                       levels={name: details["baselines"][name] for name in ("unigram", "bigram")})
    return [paragraph(f"Perplexity {details['perplexity']:,.1f} on {details['masked']:,} masked tokens."), chart,
            loss_by_frequency(details["by_frequency"])]


def loss_by_frequency(bands: Iterable[tuple[str, float, int]]) -> str:
    """A table of the bands of `MaskedReport.by_frequency`."""
    return paragraph("Loss by the frequency of the masked token:") + table(
        ["token", "loss", "tokens"], [[band, f"{loss:.3f}", f"{count:,}"] for band, loss, count in bands if count],
        numbers=(1, 2))


def _guesses(details: Details) -> list[str]:
    cells = [cell for cell in details["model"]["calibration"]["table"] if cell["predictions"]]
    curve = line_chart([Line(MODEL, [cell["confidence"] for cell in cells], [cell["accuracy"] for cell in cells]),
                        Line("perfect", [0.0, 1.0], [0.0, 1.0])],
                       x_label="confidence of the prediction", y_label="accuracy")
    norms = {whose: details[key]["gradient_norm_by_part"] for key, whose in (("model", MODEL), ("random_init", RANDOM))}
    return [curve, paragraph("Gradient norm by part of the model:"), table(
        ["part", MODEL, RANDOM], [[part, *(f"{entry[part]:.4f}" for entry in norms.values())] for part in norms[MODEL]],
        numbers=(1, 2))]


def _representations(details: Details) -> list[str]:
    names = _layer_names(details["layers"])
    entropy = details["model"]["attention_entropy_normalised"]
    heads = [f"head {i + 1}" for i in range(len(entropy[0]))]
    diversity = [Line(whose, list(range(len(names))), list(details["token_diversity"][key].values()))
                 for key, whose in (("model", MODEL), ("random_init", RANDOM))]
    return [heat_map(details["model"]["layer_similarity"], names, names, title="Similarity of layers (CKA)"),
            heat_map(details["random_init"]["layer_similarity"], names, names,
                     title="Similarity of layers (CKA), random init"),
            heat_map(entropy, [f"layer {i + 1}" for i in range(len(entropy))], heads,
                     title="Entropy of attention, relative to uniform attention"),
            line_chart(diversity, x_label="layer", y_label="token diversity")]


def _geometry(details: Details) -> list[str]:
    names = ("effective_dimensionality", "effective_rank", "mean_cosine", "top_component", "mean_norm")
    content = [[f"{layer}{note}", *(f"{entry[name]:.3g}" for name in names)]
               for key, note in (("model", ""), ("random_init", ", random init"))
               for layer, entry in details[key].items()]
    return [table(["layer", "effective dimensionality", "effective rank", "mean cosine", "first component",
                  "mean length"], content, numbers=(1, 2, 3, 4, 5))]


def _stability(details: Details) -> list[str]:
    changes = details["model"]["perturbations"]
    lines = [Line(name, list(range(len(entry["layers"]))), [layer["kept"] or 0.0 for layer in entry["layers"].values()])
             for name, entry in changes.items() if entry["layers"]]
    counts = table(["perturbation", "changed", "unchanged ids", "not possible"], [
        [name, *(f"{entry[key]:,}" for key in ("changed", "unseen", "impossible"))] for name, entry in changes.items()],
        numbers=(1, 2, 3))
    return [line_chart(lines, x_label="layer", y_label="stability of the sentence vector"),
            paragraph("1: the vector has not moved; 0: it is as far away as another sentence's."), counts]


def _composition(details: Details) -> list[str]:
    groups = {name: {MODEL: _bar(entry["score"]), RANDOM: Bar(entry["random_init"]),
                     **({} if entry["control"] is None else {"control": Bar(entry["control"])})}
              for name, entry in details["categories"].items()}
    return [bar_chart(groups, x_label="accuracy, percent", levels={"chance": 0.5})]


def _probe(details: Details) -> list[str]:
    figure = details["figure"]
    chosen = [row for row in details["rows"] if row["probe"] == "linear" and row["layer"] != "mix"]
    key, random = ("f1", "random_f1") if figure == "f1" else ("accuracy", "random")
    lines = [_over_layers(MODEL, [row[key] for row in chosen]), _over_layers(RANDOM, [row[random] for row in chosen])]
    if figure != "f1":
        lines.append(_over_layers("control task", [row["control"] for row in chosen]))
    memory = {"memory": details["verdict"]["memory"], "majority": details["baselines"]["majority"][figure]}
    columns = ["layer", "accuracy", *(["F1"] if figure == "f1" else []), RANDOM, "control task", "selectivity"]
    figures = ("accuracy", *(["f1"] if figure == "f1" else []), random, "control", "selectivity")
    content = [[f"{row['probe']}, {row['layer']}", *(_percent(row[name]) for name in figures)]
               for row in details["rows"]]
    return [line_chart(lines, x_label="layer, 0 for the embeddings", y_label=figure, levels=memory),
            table(columns, content, numbers=range(1, len(columns)))]


def _over_layers(name: str, figures: list[Details]) -> Line:
    values = [figure["mean"] for figure in figures]
    several = figures[0]["values"] > 1
    return Line(name, list(range(len(values))), values, [figure["low"] for figure in figures] if several else None,
                [figure["high"] for figure in figures] if several else None)


def _trees(details: Details) -> list[str]:
    lines = [_over_layers(whose, [row[key]["uuas"] for row in details["rows"]])
             for key, whose in (("model", MODEL), ("random", RANDOM))]
    parts = [line_chart(lines, x_label="layer, 0 for the embeddings", y_label="UUAS",
                        levels={"linear chain": details["baselines"]["linear chain"]["uuas"]})]
    if details["rank_curve"]:
        parts.append(line_chart([Line("UUAS", [point["rank"] for point in details["rank_curve"]],
                                      [point["uuas"] for point in details["rank_curve"]])],
                                x_label="rank of the probe", y_label="UUAS"))
    names = ("uuas", "distance_spearman", "depth_spearman", "root_accuracy")
    content = [[row["layer"], *(_percent(row["model"][name]) for name in names)] for row in details["rows"]]
    return [*parts, table(["layer", "UUAS", "distance Spearman", "depth Spearman", "root"], content,
                         numbers=(1, 2, 3, 4))]


def _tuning(details: Details) -> list[str]:
    parts = []
    for name, entry in details.items():
        names = list(entry["figures"])
        content = [["fine-tuned", *(_mean(entry["figures"][figure]) for figure in names)]]
        if entry["from_random"]:
            content.append(["from random weights", *(_mean(entry["from_random"][figure]) for figure in names)])
        content += [[f"baseline: {what}", f"{100 * value:.1f}", *[""] * (len(names) - 1)]
                    for what, value in entry["baselines"].items()]
        parts.append(table([name, *(figure.replace("_", " ") for figure in names)], content,
                          numbers=range(1, len(names) + 1)))
        if entry["curve"]:
            shares = [100 * float(share) for share in entry["curve"]]
            parts.append(line_chart([Line(name, shares, list(entry["curve"].values()))],
                                    x_label="percent of the training data", y_label=names[0].replace("_", " ")))
    return parts


def _mean(values: list[float]) -> str:
    return f"{100 * sum(values) / len(values):.1f}"


def _grammar(details: Details) -> list[str]:
    groups = {group["name"].replace("_", " "): {MODEL: _bar(group["accuracy"]["token"]), "bigram": Bar(
        group["accuracy"]["bigram"]["mean"])} for group in details["phenomena"]}
    content = [[group["name"].replace("_", " "), str(group["pairs"]),
                *(_percent(group["accuracy"][scorer]) for scorer in ("token", "unigram", "bigram"))]
               for group in details["paradigms"]]
    return [bar_chart(groups, x_label="accuracy on pairs, percent", levels={"chance": details["chance"]}),
            table(["paradigm", "pairs", MODEL, "unigram", "bigram"], content, numbers=(1, 2, 3, 4))]


def _verbs(details: Details) -> list[str]:
    parts = []
    for entry in details.values():
        groups = {f"{part['attractors']} attractors, {part['sentences']:,} sentences": {
            scorer: _bar(figure) if scorer == "model" else Bar(figure["mean"])
            for scorer, figure in part["accuracy"].items()} for part in entry["by_attractors"]}
        parts.append(bar_chart(groups, x_label="accuracy on verbs, percent", levels={"chance": 0.5}))
    return parts


def _facts(details: Details) -> list[str]:
    content = [[entry["relation"], f"{entry['facts']:,}", f"{entry['left_out']:,}", f"{entry['in_prompt']:,}",
                _percent(entry["prompts"]["p_at_1"]), _percent(entry["prompts"]["p_at_10"]),
                _percent(entry["frequent"]["p_at_1"]),
                "" if entry["negations"] is None else _percent(entry["negations"]["p_at_1"])]
               for entry in details["relations"]]
    return [table(["relation", "facts", "left out", "in prompt", "P@1", "P@10", "frequent P@1", "negated P@1"], content,
                 numbers=range(1, 8))]


def _words(details: Details) -> list[str]:
    lines = []
    for data in dict.fromkeys(entry["data"] for entry in details["similarity"]):
        scores = [entry for entry in details["similarity"] if entry["data"] == data and entry["layer"] != "static"
                  and entry["spearman"] is not None]
        if scores:
            x = [float(entry["layer"]) for entry in scores]
            lines += [Line(data, x, [entry["spearman"]["mean"] for entry in scores]),
                      Line(f"{data}, {RANDOM}", x, [(entry["untrained"] or {"mean": 0.0})["mean"] for entry in scores])]
    content = [[entry["data"], entry["section"] or "all", _percent(entry["accuracy"]), _percent(entry["nearest"]),
                _percent(entry["untrained"]), f"{entry['questions']:,}", f"{entry['candidates']:,}"]
               for entry in details["analogies"] if entry["layer"] == "static"]
    parts = []
    if lines:
        parts.append(line_chart(lines, x_label="layer, 0 for the embeddings", y_label="Spearman"))
    if content:
        parts.append(table(["analogies, static vectors", "section", "accuracy", "nearest word", RANDOM, "questions",
                           "candidates"], content, numbers=(2, 3, 4, 5, 6)))
    return parts


SECTIONS: dict[str, Callable[[Details], list[str]]] = {
    "masked": _masked, "guesses": _guesses, "representations": _representations, "geometry": _geometry,
    "stability": _stability, "composition": _composition, "pos": _probe, "deplabel": _probe, "ner": _probe,
    "dep": _trees, "classification": _tuning, "tagging": _tuning, "qa": _tuning, "blimp": _grammar,
    "agreement": _verbs, "facts": _facts, "similarity": _words}
