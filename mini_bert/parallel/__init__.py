"""Several processes, on one machine or many, that train one model together. Nothing here knows what they train.

    processes.py     what a process sees of the others: two ways to talk, and the one implementation for a process alone
    mpi.py           the same over MPI
    division.py      who computes which micro-batches, and who steps which part of the parameters
    heartbeat.py     a process that has stopped answering is noticed, and named
    hosts.py         what must be alike on all hosts for the same bits, and what is said where it is not
    launch.py        a command that mpirun has started: joining the others, output by one process, and faults

The way of the data in a step (training/gradient_exchange.py, training/update.py, training/optimisers):

    micro-batches are numbered in the whole batch; a process computes a run of neighbours, which is made of aligned
        blocks of the fixed tree (training/gradient_sum.py), and sums each block
    each process gets, from all others, the blocks' sums over its own shard of the flat buffer, and finishes the tree
    squares of fixed blocks are shared and added in the order of the buffer: the norm for clipping
    the optimiser steps the shard, and keeps the state of no other
    each process gives its shard of the new parameters to all others

Every sum has an order that does not depend on the number of processes, so neither do the bits. A process that is alone
is the same mechanism with one block and one shard, and exchanges nothing.
"""
