# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Statistics of device memory of devtensor.cuda, with PyTorch's names and meanings."""
from devtensor import _C
from devtensor._streams import _index

__all__ = ['max_memory_allocated', 'max_memory_reserved', 'memory_allocated', 'memory_reserved', 'memory_stats',
           'memory_summary', 'reset_accumulated_memory_stats', 'reset_max_memory_allocated',
           'reset_max_memory_reserved', 'reset_peak_memory_stats']

_ROWS = [('allocated memory', 'allocated_bytes'), ('requested memory', 'requested_bytes'),
         ('reserved memory', 'reserved_bytes'), ('split and not in use', 'inactive_split_bytes'),
         ('allocations', 'allocation'), ('segments', 'segment'), ('parts not in use', 'inactive_split')]


def memory_stats(device=None):
    """A dict of this process's memory on the device: 'allocated_bytes.all.current' and others.

    First allocation, allocated_bytes, requested_bytes, active, active_bytes, segment, reserved_bytes, inactive_split or
    inactive_split_bytes; then all, small_pool (requests of up to 1 MiB) or large_pool; then current, peak, allocated
    or freed. And num_alloc_retries, num_ooms, num_device_alloc and num_device_free.
    """
    return dict(sorted(_C._cuda_memory_stats(_index(device)).items()))


def memory_allocated(device=None):
    """Bytes of tensors."""
    return memory_stats(device)['allocated_bytes.all.current']


def max_memory_allocated(device=None):
    """The maximum of memory_allocated() since the start or reset_peak_memory_stats()."""
    return memory_stats(device)['allocated_bytes.all.peak']


def memory_reserved(device=None):
    """Bytes of tensors and of the cache."""
    return memory_stats(device)['reserved_bytes.all.current']


def max_memory_reserved(device=None):
    """The maximum of memory_reserved() since the start or reset_peak_memory_stats()."""
    return memory_stats(device)['reserved_bytes.all.peak']


def reset_peak_memory_stats(device=None):
    """Make all peaks the current values."""
    _C._cuda_memory_reset(_index(device), False)


# As in PyTorch, both reset all peaks.
reset_max_memory_allocated = reset_max_memory_reserved = reset_peak_memory_stats


def reset_accumulated_memory_stats(device=None):
    """Make the sums (allocated, freed) and numbers of memory_stats() 0."""
    _C._cuda_memory_reset(_index(device), True)


def _text(number, is_bytes):
    if not is_bytes:
        return str(number)
    unit = 0
    while number >= 10240 and unit < 4:
        number //= 1024
        unit += 1
    return f'{number} {["B", "KiB", "MiB", "GiB", "TiB"][unit]}'


def memory_summary(device=None, abbreviated=False):
    """A table of memory_stats(); abbreviated: without a row for each pool."""
    index = _index(device)
    stats = memory_stats(index)
    lines = [f'memory of this process on cuda:{index}: {stats["num_ooms"]} requests failed, '
             f'{stats["num_alloc_retries"]} were tried again',
             f'{"":24}' + ''.join(f'{c:>14}' for c in ('current', 'peak', 'allocated', 'freed'))]
    for title, name in _ROWS:
        for pool in ['all'] if abbreviated else ['all', 'small_pool', 'large_pool']:
            cells = [_text(stats[f'{name}.{pool}.{c}'], 'bytes' in name)
                     for c in ('current', 'peak', 'allocated', 'freed')]
            lines.append(f'{title if pool == "all" else "    " + pool:24}' + ''.join(f'{c:>14}' for c in cells))
    return '\n'.join(lines) + '\n'
