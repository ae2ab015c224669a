"""`import mindspore_lite`: models of files are built, resized and run, and files of frameworks converted."""

import numpy as np
import pytest

import mindspore as ms
import mindspore_lite as lite
from mindspore import Tensor, export, nn

X = np.random.RandomState(0).randn(2, 3, 8, 8).astype(np.float32)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.pool, self.dense = nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Dense(4, 5)

    def construct(self, x):
        return self.dense(self.pool(self.conv(x)).mean((2, 3)))


@pytest.fixture(scope="module")
def net():
    ms.set_seed(1)
    return Net()


@pytest.fixture
def expected(net):
    return net(Tensor(X)).asnumpy()


def built(path, kind=lite.ModelType.MINDIR, **settings):
    model = lite.Model()
    model.build_from_file(str(path), kind, lite.Context(**settings))
    return model


@pytest.mark.parametrize("form", ["MINDIR", "OM", "ONNX"])
def test_a_model_predicts_what_its_network_computes(net, expected, tmp_path, form):
    export(net, Tensor(X), file_name=str(tmp_path / "net"), file_format=form)
    model = built(tmp_path / f"net.{form.lower()}", thread_num=1)
    (x,) = model.get_inputs()
    assert (x.get_shape(), x.get_data_type(), x.element_num, x.data_size) == ([2, 3, 8, 8], lite.DataType.FLOAT32, 384, 1536)
    x.set_data_from_numpy(X)
    (made,) = model.predict([x])
    np.testing.assert_allclose(made.get_data_to_numpy(), expected, rtol=1e-5, atol=1e-6)
    (out,) = model.get_outputs()
    assert out.shape == [2, 5] and not out.get_data_to_numpy().any()
    model.predict([x], [out])
    np.testing.assert_array_equal(out.get_data_to_numpy(), made.get_data_to_numpy())


def test_inputs_are_given_other_shapes(net, tmp_path):
    export(net, Tensor(X), file_name=str(tmp_path / "net"), file_format="MINDIR")
    model = built(tmp_path / "net.mindir")
    inputs = model.get_inputs()
    model.resize(inputs, [[1, 3, 6, 6]])
    inputs[0].set_data_from_numpy(np.ascontiguousarray(X[:1, :, :6, :6]))
    np.testing.assert_allclose(model.predict(inputs)[0].get_data_to_numpy(), net(Tensor(X[:1, :, :6, :6])).asnumpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="1 elements"):
        model.resize(inputs, [[1, 3, 6, 6], [1]])


@pytest.mark.parametrize("form, kind", [("MINDIR", lite.FmkType.MINDIR), ("ONNX", lite.FmkType.ONNX)])
@pytest.mark.parametrize("later", [False, True])
def test_converted_files_are_built(net, expected, tmp_path, form, kind, later):
    export(net, Tensor(X), file_name=str(tmp_path / "net"), file_format=form)
    words = kind, str(tmp_path / f"net.{form.lower()}"), str(tmp_path / "made")
    lite.Converter().convert(*words) if later else lite.Converter(*words).converter()
    model = built(tmp_path / "made.ms", lite.ModelType.MINDIR_LITE)
    made = model.predict([X])[0].get_data_to_numpy()
    np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-6)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["made.ms", f"net.{form.lower()}"]


def test_faults_are_told_in_a_sentence(net, tmp_path):
    (tmp_path / "own.ms").write_bytes(b"\x1c\0\0\0MSL2" + bytes(50))
    export(net, Tensor(X), file_name=str(tmp_path / "net"), file_format="OM")
    model = built(tmp_path / "net.om")
    for act, error, words in (
        (lambda: lite.Model().get_inputs(), RuntimeError, "build_from_file"),
        (lambda: built(tmp_path / "none.mindir"), RuntimeError, "does not exist"),
        (lambda: built(tmp_path / "own.ms"), RuntimeError, "build_from_file failed"),
        (lambda: lite.Model().build_from_file(3), TypeError, "model_path must be str"),
        (lambda: lite.Context(thread_num="1"), TypeError, "thread_num must be int"),
        (lambda: lite.Context(thread_num=-1), ValueError, "thread_num"),
        (lambda: model.get_inputs()[0].set_data_from_numpy(X.astype(np.float64)), RuntimeError, "data type not equal"),
        (lambda: model.get_inputs()[0].set_data_from_numpy(X[:1]), RuntimeError, "data size not equal"),
        (lambda: model.predict([]), RuntimeError, "takes 1 inputs"),
        (lambda: model.resize(model.get_inputs(), [[1, 3, 8, 8]]), RuntimeError, "."),
        (lambda: lite.Converter().convert(lite.FmkType.ONNX, "none.onnx", "x"), RuntimeError, "none.onnx does not exist"),
        (lambda: lite.Converter().convert(lite.FmkType.TFLITE, str(tmp_path / "own.ms"), "x"), NotImplementedError, "TFLITE is not supported"),
        (lambda: lite.ModelParallelRunner, NotImplementedError, "a Model for each thread"),
    ):
        with pytest.raises(error, match=words):
            act()
