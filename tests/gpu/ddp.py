"""Data-parallel training with PyTorch and NCCL; ranks are those of mpirun, all on the first GPU:

    ddp.py ID_FILE STEPS [LATE_MS]

The last rank sleeps LATE_MS before each step. Prints "loss X" of rank 0. NCCL takes each rank for a
host of its own (see nccl_ranks.py).
"""
import datetime
import os
import sys
import time

from nccl_ranks import RANK, SIZE, TOGETHER

os.environ.update(TOGETHER, NCCL_HOSTID=f"host{RANK}")
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

WIDTH = 1024


def main():
    id_file, steps = sys.argv[1], int(sys.argv[2])
    late_s = float(sys.argv[3]) / 1000 if len(sys.argv) > 3 else 0
    torch.manual_seed(1)
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", init_method=f"file://{id_file}", rank=RANK, world_size=SIZE,
                            timeout=datetime.timedelta(seconds=60))  # fmt: skip
    layers = [layer for _ in range(4)
              for layer in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU())]  # fmt: skip
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers).to(device),
                                                      device_ids=[0])  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.randn(64, WIDTH, device=device)
    loss = None
    for _ in range(steps):
        if RANK == SIZE - 1:
            time.sleep(late_s)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(data), data)
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()
    if RANK == 0:
        print(f"loss {loss.item():.9g}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
