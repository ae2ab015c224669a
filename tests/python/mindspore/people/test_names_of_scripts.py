"""Names that official scripts import and few tests compute with: settings of jobs, types, files, data sets, schedules, state of floats."""

import base64
import os

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import Parameter, Tensor, context, nn, ops
from mindspore import dtype as mstype
from mindspore.common.initializer import Uniform, initializer
from mindspore.communication import GlobalComm
from mindspore.context import ParallelMode
from mindspore.mindrecord import FileReader, FileWriter
from mindspore.nn.learning_rate_schedule import LearningRateSchedule
from mindspore.nn.loss.loss import LossBase
from mindspore.ops import functional as F
from mindspore.ops import operations as P

MODES = [context.GRAPH_MODE, context.PYNATIVE_MODE]
# A grey JPEG of 48 rows and 64 columns, from black at the left to white at the right.
RAMP = (
    '|JeWF01!$>Nk#wx0RR9200961|JwjV01XKW3knDg3knMk4h;_zAQcl55)&sJ9v2`kDKRiEDJ?8BI!Zn>HbyrrEkIX6ModmpQ&KWMT47pHU`kO^'
    'PyfIG3kU!(06+l&5di<h02TlN0RaF20000000000000052nYYf02UAc0{{R30000000000000001VR7W00;pA002J#&R2qq!8PEj@J)CqycAvv'
    'FA33jD7+J13a<p$f{VdL;G*!I7lMnyHQ=i7O?W806kZB13DI~cyc1puuLReEi@`<UqVSy;f{Vd5;HvOVcqqISUJ5S>(Re7l6J83h1lNL#!A0Pr'
    '@c-E'
)
both_modes = pytest.mark.parametrize("mode", MODES, ids=["graph", "eager"])


def test_settings_of_a_job_are_kept_and_reset():
    context.set_auto_parallel_context(parallel_mode=ParallelMode.DATA_PARALLEL, gradients_mean=True, device_num=4)
    assert context.get_auto_parallel_context("parallel_mode") == "data_parallel"
    assert context.get_auto_parallel_context("gradients_mean") is True
    assert context.get_auto_parallel_context("device_num") == 4
    context.reset_auto_parallel_context()
    assert context.get_auto_parallel_context("parallel_mode") == ParallelMode.STAND_ALONE == "stand_alone"
    assert context.get_auto_parallel_context("gradients_mean") is False
    assert (ParallelMode.HYBRID_PARALLEL, ParallelMode.AUTO_PARALLEL) == ("hybrid_parallel", "auto_parallel")
    assert context.get_auto_parallel_context("device_num") == 1


@pytest.mark.parametrize("key, value, error", [("parallel_mode", "no_mode", ValueError), ("device_num", 0, ValueError), ("gradients_mean", 1, TypeError)])
def test_settings_of_a_job_are_checked(key, value, error):
    with pytest.raises(error):
        context.set_auto_parallel_context(**{key: value})
    context.reset_auto_parallel_context()


@pytest.mark.parametrize("name", "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split())
def test_types_of_numpy(name):
    assert np.dtype(mstype.dtype_to_nptype(getattr(mstype, name))) == np.dtype(name.rstrip("_"))
    assert Tensor(np.ones(2, name.rstrip("_"))).dtype == getattr(mstype, name)


@pytest.mark.parametrize("scale", [0.07, 2.0])
def test_uniform_initial_values_keep_to_their_scale(scale):
    made = initializer(Uniform(scale), [50, 40], mstype.float32).init_data().asnumpy()
    assert made.shape == (50, 40) and -scale <= made.min() < -0.9 * scale and 0.9 * scale < made.max() <= scale
    assert abs(made.mean()) < 0.05 * scale


@both_modes
def test_a_schedule_of_ones_own(mode):
    context.set_context(mode=mode)

    class Halves(LearningRateSchedule):
        def __init__(self, rate):
            super().__init__()
            self.rate, self.pow, self.cast = rate, P.Pow(), P.Cast()

        def construct(self, global_step):
            return self.rate * self.pow(Tensor(0.5, mstype.float32), self.cast(global_step, mstype.float32))

    weight = Parameter(Tensor(np.array([1.0, 2.0], np.float32)), name="w")
    optimizer = nn.SGD([weight], learning_rate=Halves(0.8))
    for _ in range(3):
        optimizer((Tensor(np.array([1.0, -1.0], np.float32)),))
    np.testing.assert_allclose(weight.asnumpy(), [1 - 0.8 * 1.75, 2 + 0.8 * 1.75], rtol=1e-6)


@both_modes
@pytest.mark.parametrize("reduction, expected", [("mean", 7.5), ("sum", 30.0), ("none", [1.0, 4.0, 9.0, 16.0])])
def test_a_loss_of_ones_own(mode, reduction, expected):
    context.set_context(mode=mode)

    class Loss(LossBase):
        def construct(self, logits, labels):
            return self.get_loss(P.Square()(logits - labels))

    x = Tensor(np.array([1.0, 2.0, 3.0, 4.0], np.float32))
    np.testing.assert_allclose(Loss(reduction)(x, Tensor(np.zeros(4, np.float32))).asnumpy(), expected)


@both_modes
def test_a_loss_with_weights(mode):
    context.set_context(mode=mode)

    class Loss(LossBase):
        def construct(self, logits, labels, weights):
            return self.get_loss(P.Square()(logits - labels), weights)

    x, w = Tensor(np.array([1.0, 2.0], np.float32)), Tensor(np.array([0.5, 2.0], np.float32))
    np.testing.assert_allclose(Loss()(x, x * 0, w).asnumpy(), 4.25)


def test_a_loss_refuses_other_reductions():
    with pytest.raises(ValueError):
        LossBase("most")


@both_modes
def test_sizes_and_numbers_as_tensors(mode):
    context.set_context(mode=mode)

    class Net(nn.Cell):
        def construct(self, x):
            axes = F.make_range(0, F.tuple_len(F.shape(x)))
            return P.ReduceSum()(x, axes) + F.scalar_to_tensor(2.5, mstype.float32), axes

    total, axes = Net()(Tensor(np.ones((2, 3), np.float32)))
    assert float(total.asnumpy()) == 8.5 and axes == (0, 1)


def test_a_job_of_one():
    from mindspore.parallel._utils import _get_device_num, _get_gradients_mean, _get_parallel_mode

    assert (_get_device_num(), _get_gradients_mean(), _get_parallel_mode()) == (1, False, "stand_alone")
    assert GlobalComm.WORLD_COMM_GROUP.endswith("_world_group")
    assert (ops.ReduceOp.SUM, ops.ReduceOp.MAX, ops.ReduceOp.MIN, ops.ReduceOp.PROD) == ("sum", "max", "min", "prod")


def schema():
    return {"label": {"type": "int32"}, "name": {"type": "string"}, "data": {"type": "bytes"}, "x": {"type": "float32", "shape": [2, 3]}}


def rows(count):
    made = np.arange(6, dtype=np.float32).reshape(2, 3)
    return [{"label": i, "name": f"row{i}", "data": bytes([i, i + 1]), "x": made + i} for i in range(count)]


@pytest.mark.parametrize("shards", [1, 3])
def test_records_are_written_and_read(tmp_path, shards):
    file = str(tmp_path / "data.mindrecord")
    writer = FileWriter(file_name=file, shard_num=shards)
    writer.add_schema(schema(), "rows")
    writer.add_index(["label"])
    writer.write_raw_data(rows(7))
    writer.commit()
    first = file if shards == 1 else file + "0"
    assert os.path.exists(first) and os.path.exists(first + ".db")
    reader = FileReader(file_name=first, num_consumer=2, columns=["label", "x"])
    seen = [row for row in reader.get_next()]
    reader.close()
    assert sorted(int(row["label"]) for row in seen) == list(range(7))
    for row in seen:
        np.testing.assert_array_equal(np.asarray(row["x"]).reshape(2, 3), rows(7)[int(row["label"])]["x"])
    data = ds.MindDataset(first, columns_list=["label", "name"], shuffle=False)
    assert sorted(int(row["label"]) for row in data.create_dict_iterator(num_epochs=1, output_numpy=True)) == list(range(7))
    assert data.get_dataset_size() == 7


@pytest.mark.parametrize("wrong, error", [({"label": {"type": "int31"}}, Exception), ({}, Exception)])
def test_a_wrong_schema_is_refused(tmp_path, wrong, error):
    with pytest.raises(error):
        FileWriter(file_name=str(tmp_path / "wrong.mindrecord"), shard_num=1).add_schema(wrong, "rows")


def test_padded_rows_follow_the_others():
    first = ds.GeneratorDataset([(np.array([i], np.int32),) for i in range(5)], ["x"], shuffle=False)
    padded = ds.PaddedDataset([{"x": np.array([-1], np.int32)} for _ in range(3)])
    together = first + padded
    assert [int(row["x"][0]) for row in together.create_dict_iterator(num_epochs=1, output_numpy=True)] == [0, 1, 2, 3, 4, -1, -1, -1]
    assert (padded.get_dataset_size(), together.get_dataset_size()) == (3, 8)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_padded_rows_fill_up_the_shards(rank):
    first = ds.GeneratorDataset([(np.array([i], np.int32),) for i in range(4)], ["x"], shuffle=False)
    padded = ds.PaddedDataset([{"x": np.array([9], np.int32)} for _ in range(2)])
    together = first + padded
    together.use_sampler(ds.DistributedSampler(num_shards=3, shard_id=rank, shuffle=False, num_samples=None))
    assert [int(row["x"][0]) for row in together.create_dict_iterator(num_epochs=1, output_numpy=True)] == [[0, 3], [1, 9], [2, 9]][rank]


@pytest.mark.parametrize("shuffle, same", [(False, True), (ds.Shuffle.FILES, None), (ds.Shuffle.GLOBAL, None), (True, None)])
def test_ways_to_shuffle_keep_all_rows(tmp_path, shuffle, same):
    for name in "ab":
        (tmp_path / name).write_text("".join(f"{name}{i}\n" for i in range(20)))
    data = ds.TextFileDataset([str(tmp_path / "a"), str(tmp_path / "b")], shuffle=shuffle)
    seen = [str(row["text"].item() if row["text"].dtype.kind == "U" else row["text"].item().decode()) for row in data.create_dict_iterator(num_epochs=1, output_numpy=True)]
    assert sorted(seen) == sorted(f"{name}{i}" for name in "ab" for i in range(20))


def test_normalize_pad_adds_a_channel():
    import mindspore.dataset.vision as vision

    image = np.random.RandomState(0).randint(0, 255, (6, 5, 3)).astype(np.uint8)
    mean, std = [120.0, 110.0, 100.0], [60.0, 50.0, 40.0]
    made = vision.NormalizePad(mean, std, "float32")(image)
    assert made.shape == (6, 5, 4) and made.dtype == np.float32 and (made[..., 3] == 0).all()
    np.testing.assert_allclose(made[..., :3], (image - np.array(mean)) / np.array(std), rtol=1e-4, atol=1e-5)
    assert vision.NormalizePad(mean, std, "float16")(image).dtype == np.float16
    with pytest.raises(ValueError):
        vision.NormalizePad(mean, std, "int8")


def test_a_jpeg_is_cropped_decoded_and_resized():
    import mindspore.dataset.vision as vision

    data = np.frombuffer(base64.b85decode(RAMP), np.uint8)
    whole = vision.RandomCropDecodeResize((24, 32), scale=(1.0, 1.0), ratio=(4 / 3, 4 / 3))(data)
    assert whole.shape == (24, 32, 3) and whole.dtype == np.uint8
    assert np.abs(whole[12, :, 0].astype(float) - np.linspace(2, 253, 32)).max() < 8
    part = vision.RandomCropDecodeResize(16, scale=(0.1, 0.5))(data)
    assert part.shape == (16, 16, 3) and (np.diff(part[8, :, 0].astype(int)) > -6).all()


def test_data_settings_of_the_process():
    assert ds.config.get_numa_enable() is False
    ds.config.set_seed(3)
    assert ds.config.get_seed() == 3
    with pytest.raises(TypeError):
        ds.config.set_numa_enable(1)


@both_modes
def test_levels_of_compilation_give_the_same(mode):
    context.set_context(mode=mode)

    class Net(nn.Cell):
        def construct(self, x):
            return x * x + 1

    net = Net()
    x = Tensor(np.array([1.0, 2.0], np.float32))
    first = net(x).asnumpy()
    other = Net()
    if hasattr(other, "set_jit_config"):
        other.set_jit_config(ms.JitConfig(jit_level="O1"))
    np.testing.assert_array_equal(first, other(x).asnumpy())


@both_modes
def test_a_state_of_floats_is_read(mode):
    context.set_context(mode=mode)
    if not hasattr(P, "FloatStatus"):
        pytest.skip("FloatStatus is no operator of this release")
    for value, expected in ((1.0, 0), (np.inf, 1), (np.nan, 1)):
        made = P.FloatStatus()(Tensor(np.array([1.0, value], np.float32))).asnumpy()
        assert made.shape == (1,) and made[0] == expected


def test_momentum_of_scaled_and_decayed_gradients():
    weight, moment = (Parameter(Tensor(np.array(v, np.float32)), name=n) for v, n in (([1.0, 2.0], "w"), ([0.1, 0.2], "m")))
    gradient = np.array([2.0, -4.0], np.float32)
    decay, scale = Tensor(np.float32(0.01)), Tensor(np.float32(0.5))
    operator = getattr(P, "FusedWeightScaleApplyMomentum", None)
    if operator is None or ms.__version__ >= "2":
        pytest.skip("no kernel for CPU")
    operator()(decay, scale, weight, moment, Tensor(np.float32(0.1)), Tensor(gradient), Tensor(np.float32(0.9)))
    expected = 0.9 * np.array([0.1, 0.2]) + 0.5 * (gradient + 0.01 * np.array([1.0, 2.0]))
    np.testing.assert_allclose(moment.asnumpy(), expected, rtol=1e-6)
