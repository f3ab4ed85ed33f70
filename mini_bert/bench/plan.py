"""The time and memory of a training step on many machines, by arithmetic from what one machine was measured to do.

    step = micro-batches of the busiest thread x time of one
         + 2 x (latency x messages + bytes through the host's network / bandwidth)          shards out, weights back
         + numbers of the shard x time of the optimiser for one / threads
         + batch x time to make a sequence of it                                            every process makes all

Nothing is overlapped, and every message goes directly from process to process, so a host with p processes sends p times
the gradients: one process a host, with as many threads as cores, has the least to send. Threads of a process are taken
to work side by side; what two of them lose is in the time of a micro-batch, which is measured on all cores at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from ..core.config import ModelConfig
from ..training.memory import training_memory
from .scaling_process import Link


@dataclass(frozen=True)
class Speeds:
    """What was measured on one machine, for one model."""

    sequence_seconds: float       # forward and backward of one sequence, in one thread, while all cores work
    flops: float                  # floating-point operations of that
    number_seconds: float         # the optimiser's step of one number, and the sums of its gradients, in one thread
    batch_seconds: float          # making one sequence of a batch


@dataclass(frozen=True)
class Cluster:
    """Machines that are alike."""

    hosts: int
    processes: int                # of each host
    threads: int                  # of each process
    network: Link                 # between hosts
    inside: Link                  # between processes of one host

    @property
    def all_processes(self) -> int:
        return self.hosts * self.processes


@dataclass(frozen=True)
class Prediction:
    """Seconds of a step by purpose, and bytes of a host by purpose."""

    cluster: Cluster
    compute: float
    exchange: float
    optimiser: float
    batches: float
    sent_bytes: int               # by each process
    memory: dict[str, int]

    @property
    def seconds(self) -> float:
        return self.compute + self.exchange + self.optimiser + self.batches


def predict(config: ModelConfig, numbers: int, speeds: Speeds, cluster: Cluster, batch_size: int,
            micro_batch_size: int) -> Prediction:
    """A step of `batch_size` sequences on the cluster, for a model of so many parameters."""
    n = cluster.all_processes
    micro_batches = ceil(batch_size / micro_batch_size)
    most = ceil(ceil(micro_batches / n) / cluster.threads)
    compute = most * min(micro_batch_size, batch_size) * speeds.sequence_seconds
    share = 4 * numbers / n                               # bytes of a shard
    away, near = (cluster.hosts - 1) * cluster.processes, cluster.processes - 1
    network = cluster.network.latency * away + share * away * cluster.processes * cluster.network.per_byte
    inside = cluster.inside.latency * bool(near) + share * near * cluster.inside.per_byte
    # the sums of all other processes' gradients, and the step
    optimiser = numbers / n * speeds.number_seconds / cluster.threads
    held = training_memory(config, micro_batch_size * min(cluster.threads, ceil(micro_batches / n)))
    memory = {"parameters": held.parameters, "gradients": held.gradients,
              "gradients of other processes": held.gradients * (n - 1) // n, "optimiser": held.optimiser // n,
              "activations": held.activations}
    return Prediction(cluster, compute, 2 * max(network, inside) if near == 0 or away == 0 else 2 * (network + inside),
                      optimiser, batch_size * speeds.batch_seconds, round(2 * share * (n - 1)),
                      {name: size * cluster.processes for name, size in memory.items()})


def growing(cluster: Cluster) -> list[Cluster]:
    """One host, two, four ... and the cluster itself."""
    counts = sorted({1 << i for i in range(cluster.hosts.bit_length()) if 1 << i < cluster.hosts} | {cluster.hosts})
    return [replace(cluster, hosts=hosts) for hosts in counts]


def efficiency(one: Prediction, many: Prediction, sequences: Sequence[int]) -> float:
    """What share of the hosts' time goes into what one host by itself would do, with batches of these sizes."""
    return (sequences[1] / many.seconds) / (sequences[0] / one.seconds * many.cluster.hosts / one.cluster.hosts)
