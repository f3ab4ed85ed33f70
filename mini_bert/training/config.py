"""TrainingConfig: everything about a run but the model and the text."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, ClassVar

from .. import objectives  # noqa: F401  (they fill the registry)
from ..configs import load_sections
from ..core.config import ModelConfig
from ..core.model import MiniBERT
from ..core.params import Parameters
from ..core.registry import check_options, find, make, parse_sum, takes
from ..errors import ConfigError
from ..objectives.making import objective_from
from ..objectives.objective import BatchValues, CorpusObjective, PassOptions
from ..settings import Settings
from ..text.curricula.curriculum import Curriculum
from ..text.masking import HIDDEN, RANDOM, BoolArray, Masking
from ..text.schedule import Schedule
from ..workers import available_cores
from . import clipping, curricula, inits, optimisers  # noqa: F401  (they fill the registry)
from .clipping.clipping import USUAL_NORM, Clipping, check_clipping, clipping_from
from .curricula.making import check_masking_weights, curriculum_from, curriculum_words, masking_weights_from
from .optimisers.making import optimiser_from, optimiser_words
from .optimisers.optimiser import Optimiser
from .param_groups import groups_of, rate_factors
from .schedules import check_schedule

_MICRO_BATCH_TOKENS = 1024    # larger ones are hardly faster, and take more memory
_OF_OPTIMISERS = ("beta1", "beta2", "epsilon", "weight_decay")
LONGEST_DAYS = 3650           # of a budget
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
SCHEDULED = BatchValues._fields       # settings whose value may be a schedule, such as 0.4 -> 0.15


@dataclass(frozen=True)
class TrainingConfig(Settings):
    """The settings of a run. Where a word may stand for a number it is a schedule: see text/schedule.py."""

    TITLE: ClassVar[str] = "The training config"

    # how long
    steps: int = 10_000
    budget: str = ""                      # a time such as 30m or 1h30m, in place of steps
    # what is learned, and what a step sees
    objective: str = "masked"             # one, or a sum with weights such as "masked + 0.5 other"
    main_loss: str = ""                   # the one that is logged as `loss`; of the first objective unless named
    batch_size: int | str = 32            # sequences; or a schedule such as 16 -> 64 over 0.6
    micro_batch_size: int = 0             # longest sequences that one thread computes at a time; 0: about 1,024 tokens
    max_seq_length: int | str = 0         # 0: the model's; or a schedule such as 64 until 0.9, 128
    sequences: str = "packed"             # packed, sentences or pairs; or such as sentences until 0.7, packed
    bucket: bool = False                  # sequences of similar length together, of batch_size x max_seq_length tokens
    curriculum: str = ""                  # easy ones first, such as rarity(pacing=root, start=0.2, until=0.6)
    masking_rate: float | str = 0.15      # share of the tokens; or a schedule such as 0.4 -> 0.15
    masking_unit: str = "token"           # token, word or span, or a word of your own
    masking_hidden: float = HIDDEN        # share of the chosen tokens that become [MASK]
    masking_random: float = RANDOM        # share of them that become a random token; the rest is kept
    masking_weights: str = "even"         # or adaptive(every=200): by what the model does not find
    # how a new model begins
    init: str = "normal"                  # normal; local: the first layer looks at neighbours; words(of=mini)
    frequency_bias: bool = False          # the head's bias begins with the frequencies of the corpus' tokens
    # the optimiser
    optimiser: str = "adamw"              # or one around another, such as lookahead(adamw, k=6)
    learning_rate: float = 1e-3
    schedule: str = "linear"              # linear, cosine, constant or wsd
    warmup_steps: int = 500
    final_rate: float = 0.0               # share of the learning rate that is left at the end
    decay_share: float = 0.2              # of the steps, for wsd
    beta1: float = 0.9                    # beta1, beta2, epsilon: an optimiser's own, if left as they are here
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.01
    clipping: str = "norm"                # by the global norm, or adaptive(limit=0.01): by unit
    max_grad_norm: float = USUAL_NORM     # for norm; 0: no clipping
    moments: str = "float32"              # how the optimiser's are stored, or bfloat16: in half the memory
    layer_decay: float = 1.0              # factor of the learning rate from each layer to the one below it
    freeze: str = ""                      # parts or parameters that stay, such as "embeddings layer_0"
    # the machine
    threads: int = 0                      # 0: all cores
    gradient_checkpointing: bool = False
    activations: str = "float32"          # how what the backward needs is stored, or bfloat16: in half the memory
    seed: int = 0
    # what is kept
    log_every: int = 10
    eval_every: int = 500                 # 0: at the end alone
    evaluations: int = 0                  # their number, evenly over the run; replaces eval_every
    eval_sequences: int = 512
    checkpoint_every: int = 500
    keep_checkpoints: int = 2
    snapshots: int = 0                    # light copies of the model over the whole run, more of them at its beginning
    max_bad_steps: int = 5                # without a finite loss, in a row, before the run stops

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in (("steps", 1), ("micro_batch_size", 0), ("warmup_steps", 0), ("threads", 0),
                            ("log_every", 1), ("eval_every", 0), ("evaluations", 0), ("eval_sequences", 1),
                            ("checkpoint_every", 1), ("keep_checkpoints", 1), ("snapshots", 0), ("max_bad_steps", 1),
                            ("learning_rate", 0), ("max_grad_norm", 0), ("seed", 0)):
            if not least <= getattr(self, name) < float("inf"):
                raise ConfigError(f"{name} must be at least {least}, not {getattr(self, name)}.")
        for name in ("final_rate", "decay_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name} must be between 0 and 1, not {getattr(self, name)}.")
        for name, least in (("batch_size", 1), ("max_seq_length", 1 if isinstance(self.max_seq_length, str) else 0)):
            if min(self.schedule_of(name).values) < least:
                raise ConfigError(f"{name} must be at least {least}, not {getattr(self, name)}.")
        for word in self.schedule_of("sequences").values:
            find("sequences", word)
        for _, word in parse_sum(self.objective, "objective"):
            check_options("objective", word, given=2)
        optimiser_words(self.optimiser)
        check_clipping(self.clipping)
        make("moments", self.moments)
        make("activations", self.activations)
        check_schedule(self.schedule)
        make("init", self.init)
        if not 0 < self.layer_decay <= 1:
            raise ConfigError(f"layer_decay must be above 0 and at most 1, not {self.layer_decay}.")
        for rate in self.schedule_of("masking_rate").values:
            if not 0 < rate < 1:
                raise ConfigError(f"masking_rate must be between 0 and 1, not {rate}.")
        self.masking()        # refuses a wrong unit
        check_masking_weights(self.masking_weights)
        self.ordering()       # refuses a curriculum that cannot be made
        self.budget_seconds()

    def words(self) -> list[tuple[str, str]]:
        """(slot, word) of everything that the registry is asked for."""
        return [*(("objective", word.name) for _, word in parse_sum(self.objective, "objective")),
                *(("optimiser", word.name) for word in optimiser_words(self.optimiser)),
                ("clipping", self.clipping), ("moments", self.moments), ("activations", self.activations),
                ("schedule", self.schedule), ("init", self.init),
                ("masking_weights", self.masking_weights), *curriculum_words(self.curriculum)]

    def _coerced(self, name: str, value: Any, kind: type) -> Any:
        if name not in SCHEDULED or not isinstance(value, str):
            return super()._coerced(name, value, kind)
        schedule: Schedule[Any] = Schedule.parse(value, kind, name)
        return schedule.at(0.0) if schedule.constant else str(schedule)

    def schedule_of(self, name: str) -> Schedule[Any]:
        """Of one of the settings that may have one."""
        return Schedule.parse(getattr(self, name), type(getattr(TrainingConfig, name)), name)

    def at(self, share: float) -> BatchValues:
        """What the scheduled settings are when this share of the run is done."""
        return BatchValues(**{name: self.schedule_of(name).at(share) for name in SCHEDULED})

    def changing(self, share: float) -> dict[str, Any]:
        """Of the settings that change over this run, what they are when this share of it is done."""
        values = {name: value for name, value in self.at(share)._asdict().items()
                  if not self.schedule_of(name).constant}
        curriculum = self.ordering()
        return values if curriculum is None else {**values, "curriculum_share": curriculum.share(share)}

    def plain_batches(self) -> bool:
        """Have all batches the same number of sequences, of the same length?"""
        return not self.bucket and not {"batch_size", "max_seq_length", "sequences"} & self.changing(0.0).keys()

    def masking(self, ordinary: BoolArray | None = None) -> Masking:
        """How training masks; `ordinary` (V,) says which tokens can be masked, for weights that learn from the model:
        new ones with every call."""
        rate = self.schedule_of("masking_rate") if isinstance(self.masking_rate, str) else self.masking_rate
        weights = None if ordinary is None else masking_weights_from(self.masking_weights, ordinary)
        return Masking(rate, self.masking_unit, self.masking_hidden, self.masking_random, weights)

    def ordering(self) -> Curriculum | None:
        """In which order sequences come, if it is not random."""
        return curriculum_from(self.curriculum)

    def budget_seconds(self) -> float | None:
        """The budget in seconds; None if the number of steps is given instead."""
        return parse_duration(self.budget) if self.budget else None

    def resolved(self, model: ModelConfig) -> "TrainingConfig":
        """With what depends on the machine and the model written out, so that a resumed run is the same run."""
        threads = self.threads or available_cores()
        lengths = self.max_seq_length or model.max_seq_length
        longest = max(Schedule.parse(lengths, int, "max_seq_length").values)
        if longest > model.max_seq_length:
            raise ConfigError(f"training.max_seq_length={lengths} is more than the model takes, "
                              f"model.max_seq_length={model.max_seq_length}.")
        # of batch and length alone, so that the number of threads changes no bit of a run; two parts at least
        largest = max(self.schedule_of("batch_size").values)
        suitable = min(-(-largest // 2), max(1, _MICRO_BATCH_TOKENS // longest))
        return replace(self, threads=threads, max_seq_length=lengths,
                       micro_batch_size=min(self.micro_batch_size or suitable, largest))

    def passes(self) -> PassOptions:
        """How passes are run. What one thread computes at a time is bounded, whatever the lengths of sequences."""
        tokens = 0 if self.plain_batches() else self.micro_batch_size * max(self.schedule_of("max_seq_length").values)
        return PassOptions(self.micro_batch_size, tokens, self.gradient_checkpointing, self.activations)


def make_objective(config: TrainingConfig, model: MiniBERT) -> CorpusObjective[Any, Any]:
    """What the config's words name, for this model."""
    objective = objective_from(config.objective, model, config.passes(), config.main_loss, config.sequences,
                               seed=config.seed)
    if not objective.masks and check_masking_weights(config.masking_weights):
        raise ConfigError(f"masking_weights is {config.masking_weights}, but the objective {config.objective} masks no "
                          "tokens; leave it at even.")
    return objective


def make_optimiser(config: TrainingConfig, params: Parameters) -> Optimiser:
    """What the config's words name, with the settings that each takes: beta1, weight_decay and the like."""
    factors = rate_factors(params, config.layer_decay, config.freeze)
    taken = set[str]().union(*(takes("optimiser", word) | word.options.keys()
                               for word in optimiser_words(config.optimiser)))
    settings = {name: getattr(config, name) for name in _OF_OPTIMISERS
                if getattr(config, name) != getattr(TrainingConfig, name)}        # 0.999 is not every optimiser's beta2
    for name, value in settings.items():
        if name not in taken and value:                                           # 0: without it
            raise ConfigError(f"{name} is set, but the optimiser {config.optimiser} takes none.")
    settings |= {"learning_rate": config.learning_rate, "weight_decay": config.weight_decay}
    if "factors" not in taken and set(factors.values()) != {1.0}:
        raise ConfigError(f"freeze or layer_decay is set, but the optimiser {config.optimiser} does not support such "
                          "factors.")
    return optimiser_from(config.optimiser, params, settings | {"groups": groups_of(params), "factors": factors},
                          config.moments)


def make_clipping(config: TrainingConfig, params: Parameters) -> Clipping:
    """What the config's word names."""
    return clipping_from(config.clipping, params, config.max_grad_norm)


def load_run_config(name_or_file: str | PathLike[str], changes: Iterable[str] = ()) -> tuple[ModelConfig,
                                                                                             TrainingConfig]:
    """Model and training of a preset or a YAML file, with changes such as "training.learning_rate=1e-3"."""
    model, training = load_sections(name_or_file)
    sections = changed({"model": model.to_dict(), "training": dict(training)}, changes)
    return ModelConfig.from_dict(sections["model"]), TrainingConfig.from_dict(sections["training"])


def changed(sections: dict[str, dict[str, Any]], changes: Iterable[str],
            source: str = "The config") -> dict[str, dict[str, Any]]:
    """Sections of settings with changes such as "training.learning_rate=1e-3"."""
    for change in changes:
        name, equals, value = change.partition("=")
        section, dot, key = name.strip().partition(".")
        if not equals or not dot or section not in sections:
            raise ConfigError(f"{source} cannot be changed by {change!r}; write SECTION.KEY=VALUE, where SECTION "
                              f"is one of {', '.join(sections)}, as in {next(reversed(sections))}.learning_rate=1e-3.")
        sections[section] = {**sections[section], key: value.strip()}
    return sections


def parse_duration(text: str) -> float:
    """Seconds in a time such as 90s, 30m, 1h30m, 2d, or a bare number of seconds."""
    parts = re.fullmatch(r"(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?",
                         text.strip().lower())
    seconds = sum(float(number) * _UNITS[unit] for number, unit in zip(parts.groups(), "dhms", strict=True)
                  if number) if parts else 0
    if not 0 < seconds <= LONGEST_DAYS * _UNITS["d"]:
        raise ConfigError(f"{text[:100]!r} is not a length of time up to {LONGEST_DAYS} days; write 90s, 30m, "
                          "1h30m or 2d.")
    return seconds
