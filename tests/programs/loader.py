# SPDX-License-Identifier: Apache-2.0
#
# Three epochs of a DataLoader with two forked workers (and the pinning of batches left out, there is no GPU), between
# tensor work on threads that end. Prints sums that do not depend on scheduling. Run by torch.sh.
import threading

import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, index):
        return torch.full((32, 32), float(index)) ** 2


def multiply(size, results, place):
    left = torch.ones(size, size)
    results[place] = int((left @ left).sum().item())


def threads_round(count):
    results = [0] * count
    threads = [threading.Thread(target=multiply, args=(128, results, i)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(results)


if __name__ == "__main__":
    torch.set_num_threads(2)
    loader = DataLoader(Squares(), batch_size=16, num_workers=2, multiprocessing_context="fork")
    for epoch in range(3):
        total = sum(int(batch.sum().item()) for batch in loader)
        print("epoch", epoch, "total", total, "threads", threads_round(8))
