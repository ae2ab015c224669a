"""What every Python test shares: shards, long tests, the folder of test models and how outputs are compared."""

import os
import zlib

import numpy as np
import pytest


def pytest_collection_modifyitems(config, items):
    index, count = map(int, os.environ.get("CAIRN_TEST_SHARD", "1/1").split("/"))
    everything = os.environ.get("CAIRN_TEST_ALL") == "1"

    def wanted(item):
        mine = zlib.crc32(item.nodeid.encode()) % count == index - 1
        return mine and (everything or item.get_closest_marker("long") is None)

    config.hook.pytest_deselected(items=[item for item in items if not wanted(item)])
    items[:] = [item for item in items if wanted(item)]


def spread_error(found, expected):
    """Largest difference as a share of the expected output's spread over inputs.

    The spread is the standard deviation over the batch, averaged over the other elements: a net whose output hardly
    depends on its input has a small one, so that agreement on constants proves nothing."""
    expected = np.asarray(expected, np.float64)
    spread = expected.std(axis=0).mean() if expected.ndim else abs(expected)
    return float(np.abs(np.asarray(found, np.float64) - expected).max() / spread)
