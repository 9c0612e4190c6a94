# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Data sets, samplers and loaders with PyTorch's names and arguments."""
from devtensor.utils.data.collate import default_collate, default_convert  # noqa: F401
from devtensor.utils.data.dataset import (ChainDataset, ConcatDataset, Dataset, IterableDataset, StackDataset,
                                          # noqa: F401
                                          Subset, TensorDataset, random_split)
from devtensor.utils.data.loader import DataLoader, get_worker_info  # noqa: F401
from devtensor.utils.data.sampler import (BatchSampler, RandomSampler, Sampler, SequentialSampler,  # noqa: F401
                                          ShardSampler, SubsetRandomSampler, WeightedRandomSampler)
