"""Distributed training of a linear layer with PyTorch on CPUs, in annotated steps; rank LATE works
longer in each of them.

    train.py STEPS LATE
"""
import sys
import time

import aon
import torch
from torch import distributed

STEPS, LATE = int(sys.argv[1]), int(sys.argv[2])

torch.set_num_threads(1)
distributed.init_process_group("gloo")
rank = distributed.get_rank()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(STEPS):
    with aon.step():
        with aon.region("forward"):
            loss = model(torch.randn(32, 64)).sum()
            until = time.perf_counter() + (0.03 if rank == LATE else 0)
            while time.perf_counter() < until:
                pass
        with aon.region("backward"):  # and the allreduce of the gradients
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()
print(f"rank {rank} of {distributed.get_world_size()}: {STEPS} steps", flush=True)
distributed.destroy_process_group()
