"""How much a server takes on at once, and how long it waits: what `mini-bert serve --help` lists."""

from dataclasses import dataclass

from ..errors import ConfigError


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes, times in seconds. A request above a limit is refused with a sentence and a status."""

    body: int = 2_000_000             # of one request
    bodies: int = 64_000_000          # of all requests that are being received
    inputs: int = 2048                # texts of a request
    tokens: int = 65_536              # of a request
    batch_tokens: int = 8192          # that a model reads at a time, of as many requests as fit
    window: float = 0.002             # that the first request of a batch waits for others
    queue: int = 512                  # requests that wait for a model
    queue_tokens: int = 1_048_576     # and their tokens
    connections: int = 1000
    head: float = 10.0                # until the head of a request has arrived
    receive: float = 30.0             # until its body has
    answer: float = 60.0              # from then until its answer is computed
    send: float = 30.0                # while a client does not read its answer
    keep_alive: float = 15.0          # without a request
    stop: float = 30.0                # for requests that were accepted before SIGTERM
    cache: int = 32_000_000           # bytes of vectors that are kept for texts that come again

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 0 or (value == 0 and name not in ("window", "cache")):
                raise ConfigError(f"The limit {name} must be above 0, not {value}.")
