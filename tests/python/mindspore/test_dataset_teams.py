"""mindspore.dataset with functions in threads and processes, and with caches."""

import os

import mindspore.dataset as ds
import numpy as np
import pytest


class Source:
    def __len__(self):
        return 10

    def __getitem__(self, index):
        return np.array([index, index + 1], np.int32), np.array(os.getpid())


def values(dataset, name="x"):
    return [row[name].tolist() for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True)]


def square(x):
    return x * x


def batched(columns, info):
    return [np.append(each, info.get_batch_num()) for each in columns]


@pytest.mark.parametrize("processes", [False, True])
def test_generators_maps_and_batches_in_teams_give_the_same_rows(processes):
    def made(workers, processes):
        source = ds.GeneratorDataset(Source(), ["x", "process"], shuffle=False, num_parallel_workers=workers, python_multiprocessing=processes)
        rows = source.map([square, lambda x: x + 1], "x", num_parallel_workers=workers, python_multiprocessing=processes)
        return rows.batch(3, num_parallel_workers=workers, per_batch_map=batched, input_columns=["x"], python_multiprocessing=processes)

    assert values(made(2, processes)) == values(made(1, False))


def test_a_generators_processes_are_others():
    def processes(workers):
        source = ds.GeneratorDataset(Source(), ["x", "process"], shuffle=False, num_parallel_workers=workers)
        return {each for each in values(source, "process")}

    assert processes(1) == {os.getpid()}
    assert len(processes(2)) == 2 and os.getpid() not in processes(2)


def test_a_cache_keeps_rows_for_the_next_epochs():
    cache, calls = ds.DatasetCache(session_id=1, size=0), []

    def counted(x):
        calls.append(1)
        return x + 1

    rows = ds.NumpySlicesDataset(np.arange(6), ["x"], shuffle=False).map(counted, "x", cache=cache).batch(2)
    iterator = rows.create_dict_iterator(num_epochs=2, output_numpy=True)
    assert [[row["x"].tolist() for row in iterator] for _ in range(2)] == [[[1, 2], [3, 4], [5, 6]]] * 2
    stat = cache.get_stat()
    assert (stat.num_mem_cached, stat.num_disk_cached, stat.avg_cache_sz) == (6, 0, 8)
    with pytest.raises(TypeError, match="DatasetCache"):
        ds.NumpySlicesDataset(np.arange(6), ["x"]).map(counted, "x", cache=3)
