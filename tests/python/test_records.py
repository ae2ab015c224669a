"""Records of tf.train.Example and lines of CSV become tensors as TensorFlow makes them."""

import numpy as np
import pytest
from test_texts import compare, saved

import cairn


def parsed(tf, records):
    features = {
        "fixed": tf.io.FixedLenFeature([2], tf.float32, [0.5, -1.0]), "one": tf.io.FixedLenFeature([], tf.int64, 7), "name": tf.io.FixedLenFeature([1], tf.string, [b"none"]),
        "open": tf.io.FixedLenSequenceFeature([2], tf.int64, allow_missing=True, default_value=-1), "words": tf.io.VarLenFeature(tf.string), "numbers": tf.io.VarLenFeature(tf.float32),
        "rows": tf.io.RaggedFeature(tf.int64), "texts": tf.io.RaggedFeature(tf.string, row_splits_dtype=tf.int64),
    }  # fmt: skip
    made = tf.io.parse_example(records, features)
    first = tf.raw_ops.ParseExample(serialized=records, names=[], sparse_keys=["words"], dense_keys=["one"], dense_defaults=[tf.constant([3], tf.int64)], sparse_types=[tf.string], dense_shapes=[[1]])
    single = tf.io.parse_single_example(records[0], {name: features[name] for name in ("fixed", "name", "words", "open")})
    results = {name: made[name] for name in ("fixed", "one", "name", "open")} | {"first_one": first.dense_values[0], "first_words": first.sparse_values[0]}
    results |= {f"single_{name}": single[name] for name in ("fixed", "name", "open")}
    for name, value in {"words": made["words"], "numbers": made["numbers"], "single_words": single["words"]}.items():
        results |= {f"{name}_indices": value.indices, f"{name}_values": value.values, f"{name}_shape": value.dense_shape}
    for name in ("rows", "texts"):
        results |= {f"{name}_values": made[name].values, f"{name}_splits": made[name].row_splits}
    return results


def records():
    from recommenders import example

    unpacked = b"\n\x1d\n\x1b\n\x03one\x12\x14\x1a\x12\n\x00\n\x00"  # cut off: no record
    return [example(fixed=[1.0, 2.0], one=[5], name=["n"], open=[1, 2, 3, 4], words=["a", "b"], numbers=[1.0], rows=[1, 2, 3], texts=["x"], other=[9]),
            example(open=[7, 8], words=[], numbers=[2.0, 3.0]), b"",
            example(one=[-1], name=["größer"], texts=["y", "", "z"])], unpacked  # fmt: skip


@pytest.mark.parametrize("count", (4, 1))
def test_records(tmp_path, count):
    import tensorflow as tf

    good, bad = records()
    model = saved(tf, tmp_path / "saved", parsed, tf.TensorSpec([None], tf.string, "records"))
    given = good[:count]
    expected = {name: value.numpy() for name, value in model(tf.constant(given)).items()}
    loaded = cairn.load(str(tmp_path / "saved"))
    compare(loaded, {"records": np.array(given, object)}, expected)
    with pytest.raises(cairn.Error, match="is no tf.train.Example"):
        loaded.run({"records": np.array([bad], object)})


def test_lines_of_csv(tmp_path):
    import tensorflow as tf

    def make(tf, lines):
        columns = tf.io.decode_csv(lines, [[1.5], tf.constant([], tf.string), [7]], na_value="NA")
        some = tf.io.decode_csv(lines, [["none"], tf.constant([3], tf.int64)], select_cols=[1, 2])
        return {f"column{i}": value for i, value in enumerate([*columns, *some])}

    lines = ["1.25,plain,3", ',"quoted, with ""quotes""",', "NA,x,-5"]
    model = saved(tf, tmp_path / "saved", make, tf.TensorSpec([None], tf.string, "lines"))
    expected = {name: value.numpy() for name, value in model(tf.constant(lines)).items()}
    loaded = cairn.load(str(tmp_path / "saved"))
    compare(loaded, {"lines": np.array(lines, object)}, expected)
    for line, match in (("1,a", "record 0 has 2 fields, expected 3"), ("x,a,1", "field 0 of record 0 is no f32: 'x'"),
                        ('1,"a,1', "record 0 has a quote that is not closed"), ("1,,1", "field 1 of record 0 is missing and has no default")):  # fmt: skip
        with pytest.raises(cairn.Error, match=match):
            loaded.run({"lines": np.array([line], object)})
