"""What each relative of BERT costs at Mini's size: parameters by component, operations of a training step, memory.

    python docs/comparisons/mini_family.py

Operations are those of the matrix products of one sequence of the model's own length with 15 % of its tokens masked,
counted while the step runs; memory is the forecast for AdamW at a batch of 32, with the preset's own objective.
"""

from math import prod

from mini_bert.bench.flops import count_flops
from mini_bert.configs import preset_names
from mini_bert.core.modules.assembly import parameter_specs
from mini_bert.training.config import load_run_config
from mini_bert.training.memory import training_memory


def main() -> None:
    print(f"{'preset':14} {'T':>4} {'embeddings':>11} {'layers':>10} {'rest':>10} {'total':>10} {'MFLOP/token':>12} "
          f"{'MB':>6}")
    for name in (name for name in preset_names() if name.startswith("mini")):
        config, training = load_run_config(name)
        specs = parameter_specs(config)
        embeddings = sum(prod(spec.shape) for spec in specs if spec.component == "embeddings")
        layers = sum(prod(spec.shape) for spec in specs if spec.layer is not None or spec.component == "attention")
        total = sum(prod(spec.shape) for spec in specs)
        T, step = config.max_seq_length, count_flops(config).step
        memory = training_memory(config, 32, objective=training.objective).total / 1e6
        print(f"{name:14} {T:4} {embeddings:11,} {layers:10,} {total - embeddings - layers:10,} {total:10,} "
              f"{f'{step / T / 1e6:.2f}' if step else '-':>12} {memory:6,.0f}")


if __name__ == "__main__":
    main()
