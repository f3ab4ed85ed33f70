"""Processes that are threads of one, to test what is divided among processes where there is no MPI."""

from concurrent.futures import ThreadPoolExecutor
from queue import Queue
from threading import Barrier, BrokenBarrierError

import numpy as np


class ThreadProcess:
    near = True                           # do they have memory in common?

    def __init__(self, rank, size, barrier, table, mail):
        self.rank, self.size, self._barrier, self._table, self._mail = rank, size, barrier, table, mail
        self.exchanged_bytes = 0

    def name(self, rank):
        return f"process {rank} of {self.size}"

    def share(self, value):
        self._table[self.rank] = value
        self._barrier.wait()
        values = list(self._table)
        self._barrier.wait()
        return values

    def common(self, size, dtype):
        return self.share(np.zeros(size, dtype)) if self.near else None

    def transfer(self, sent, received):
        for message in sent:
            self._mail[self.rank, message.other].put(np.array(message.numbers))
            self.exchanged_bytes += message.numbers.nbytes
        for message in received:
            message.numbers[...] = self._mail[message.other, self.rank].get(timeout=60)


def together(size, function):
    """The results of function(processes), called by each of `size` processes; the first error ends all of them."""
    barrier, table = Barrier(size, timeout=60), [None] * size
    mail = {(one, other): Queue() for one in range(size) for other in range(size)}

    def one(rank):
        try:
            return function(ThreadProcess(rank, size, barrier, table, mail))
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(size) as threads:
        futures = [threads.submit(one, rank) for rank in range(size)]
        errors = [error for future in futures if (error := future.exception()) is not None]
    for error in sorted(errors, key=lambda error: isinstance(error, BrokenBarrierError)):
        raise error
    return [future.result() for future in futures]
