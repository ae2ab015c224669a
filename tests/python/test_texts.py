"""Ops on strings, sparse and ragged tensors and lookup tables give what TensorFlow gives, and refuse what it refuses."""

import numpy as np
import pytest

import cairn

TEXTS = ["", "a", "cat and dog", "  Größe 12, x=3  ", "seventeen letters", "thirty-three letters are in here!", "x" * 64, "long " * 40,
         "a,b,,c", "--", "snow\u2603man", "tab\tand\nline"]  # fmt: skip
NUMBERS = [" 12 ", "-7", "0", "2147483647"]
REALS = ["1.5", " -2e3 ", "inf", "nan", "1e400", "+4", "1e-400", ".5"]
PATTERNS = [r"[a-z ]+", r"(?i)CAT|x+", r"\w+(\s\w+)*", r"^$", r"a.*?b", r"(a|b|,)*c?", r"[^\x00-\x7f]", r".{3,5}", r"\b\w", r"[[:punct:]]", r"(?s).*line",
            r"x{64}", r"(?P<first>\w)(\w*)", r"[]a-]+", r"\d+|\pN?"[:3], r"(?:t|th)(?:irty)?-?", r"\Qx=\E"]  # fmt: skip
SPARSE = ([[0, 1], [0, 3], [2, 0], [3, 2]], [1.5, -2.0, 0.5, 4.0], [5, 4])
WORDS = (SPARSE[0], ["red", "green", "blue", "red"], SPARSE[2])


def text_cases(tf, x, numbers, reals):
    raw, s = tf.raw_ops, tf.strings
    cases = {
        "lower": s.lower(x), "upper": s.upper(x), "strip": s.strip(x), "length": s.length(x), "characters": s.length(x, "UTF8_CHAR"),
        "fast": s.to_hash_bucket_fast(x, 1000003), "strong": s.to_hash_bucket_strong(x, 1 << 40, [5, -7]), "hash": s.to_hash_bucket(x, 9999991),
        "one_bucket": s.to_hash_bucket_fast(x, 1), "to_int": s.to_number(numbers, tf.int32), "to_long": s.to_number(numbers, tf.int64),
        "to_float": s.to_number(reals), "to_double": s.to_number(reals, tf.float64), "part": s.substr(x[2:], 1, 4), "end": s.substr(x[2:9], -3, 2),
        "letters": s.substr(x[2:], 1, 5, "UTF8_CHAR"), "joined": s.join([x, "-", x], "/"), "reduced": s.reduce_join([x, x], 0, separator="+"),
        "all": raw.ReduceJoin(inputs=tf.reshape(x, [3, 4]), reduction_indices=[1, 0], separator=" "),
        "kept": s.reduce_join(tf.reshape(x, [3, 4]), -1, keepdims=True), "encoded": tf.io.encode_base64(x), "padded": tf.io.encode_base64(x, True),
        "decoded": tf.io.decode_base64(tf.io.encode_base64(x, True)), "raw": tf.io.decode_raw(tf.fill([3], "abcdefgh"), tf.int16),
        "big": tf.io.decode_raw(x[6:7], tf.int32, little_endian=False), "as_int": s.as_string(tf.constant([-5, 0, 123])), "bools": s.as_string(x == "a"),
        "as_float": s.as_string(tf.constant([1.5, -0.25, 1e10])), "wide": s.as_string(tf.constant([5, 77]), width=5, fill="0"),
        "science": s.as_string(tf.constant([12345.678]), precision=3, scientific=True), "short": s.as_string(tf.constant([0.1, 1e20]), shortest=True),
        "pads": tf.pad(tf.reshape(x, [3, 4]), [[1, 0], [0, 2]], constant_values="p"), "equal": tf.equal(x, "a"),
        "once": s.regex_replace(x, "[aeiou]+", r"<\0>", replace_global=False), "empty": s.regex_replace(x, "z*", "-"),
    }  # fmt: skip
    for i, pattern in enumerate(PATTERNS):
        cases[f"match{i}"] = s.regex_full_match(x, pattern)
        cases[f"replace{i}"] = s.regex_replace(x, pattern, r"{\0}")
    cases["groups"] = s.regex_replace(x, r"(\w)(\w+)", r"\2\1\\")
    for name, op in {"words": raw.StringSplitV2(input=x, sep=""), "commas": raw.StringSplitV2(input=x, sep=","), "most": raw.StringSplitV2(input=x, sep=" ", maxsplit=1),
                     "bytes": raw.StringSplit(input=x, delimiter=" ,"), "empties": raw.StringSplit(input=x, delimiter=",", skip_empty=False),
                     "letters_of": raw.StringSplit(input=x, delimiter="")}.items():  # fmt: skip
        cases |= {f"{name}_indices": op.indices, f"{name}_values": op.values, f"{name}_shape": op.shape}
    decoded = raw.UnicodeDecode(input=x, input_encoding="UTF-8")
    grams = raw.StringNGrams(data=x, data_splits=tf.constant([0, 2, 2, 7, 12], tf.int64), separator="|", ngram_widths=[2, 3], left_pad="<", right_pad=">", pad_width=-1, preserve_short_sequences=True)
    return cases | {"code_splits": decoded.row_splits, "codes": decoded.char_values, "grams": grams.ngrams, "gram_splits": grams.ngrams_splits}


def sparse_cases(tf, indices, values, shape, words):
    x = tf.sparse.SparseTensor(indices, values, shape)
    y = tf.sparse.SparseTensor(indices, words, shape)
    ids = tf.sparse.SparseTensor(indices, tf.cast(tf.abs(values), tf.int64), shape)
    rows = tf.RaggedTensor.from_row_splits(values, tf.constant([0, 1, 1, 4], tf.int64))
    names = tf.RaggedTensor.from_row_splits(words, tf.constant([0, 3, 4], tf.int64))
    deep = tf.RaggedTensor.from_row_splits(rows, tf.constant([0, 2, 3], tf.int64))
    table = tf.constant(np.arange(24, dtype=np.float32).reshape(8, 3))
    results = {
        "dense": tf.sparse.to_dense(x), "dense_text": tf.sparse.to_dense(y, "none"), "sum": tf.sparse.reduce_sum(x, 1), "most": tf.sparse.reduce_max(x, 0, keepdims=True),
        "product": tf.sparse.sparse_dense_matmul(x, table[:4]), "embedded": tf.nn.safe_embedding_lookup_sparse(table, ids),
        "weighted": tf.nn.safe_embedding_lookup_sparse(table, ids, tf.sparse.SparseTensor(indices, tf.abs(values) + 1, shape), combiner="sqrtn"),
        "pruned": tf.nn.safe_embedding_lookup_sparse(table, ids, default_id=2, combiner="sum"), "lookup": tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum"),
        "padded": rows.to_tensor(-1.0), "cut": rows.to_tensor(shape=[2, 2]), "names": names.to_tensor("?"), "depth": deep.to_tensor(), "lengths": rows.row_lengths(),
        "row_sums": tf.reduce_sum(rows, 1), "row_ids": rows.value_rowids(), "picked": tf.gather(rows, [2, 0]).values, "range": tf.ragged.range([0, 3], [4, 5]).values,
        "mapped": tf.ragged.map_flat_values(tf.square, rows).to_tensor(), "joined": tf.concat([rows, rows], 1).to_tensor(), "words": tf.strings.split(tf.constant(["a b", "", "c d e"])).to_tensor(),
        "cwise": (x * tf.constant([1.0, 2, 3, 4])).values,
    }  # fmt: skip
    for name, made in {"reshaped": tf.sparse.reshape(x, [2, -1, 5]), "filled": tf.sparse.fill_empty_rows(x, 9.0)[0], "slice": tf.sparse.slice(x, [1, 0], [3, 2]),
                       "concat": tf.sparse.concat(1, [y, y]), "ordered": tf.sparse.reorder(tf.sparse.SparseTensor(indices[::-1], values, shape)),
                       "added": tf.sparse.add(x, tf.sparse.SparseTensor([[0, 1], [4, 0]], [-1.5, 1.0], shape), 0.1), "softmax": tf.sparse.softmax(x),
                       "crossed": tf.sparse.cross([y, tf.constant([["a"], ["b"], ["c"], ["d"], ["e"]])]), "hashed": tf.sparse.cross_hashed([y, ids], 1000), "any": tf.sparse.cross_hashed([ids, y]),
                       "rows": rows.to_sparse(), "deep": deep.to_sparse()}.items():  # fmt: skip
        results |= {f"{name}_{part}": getattr(made, part) for part in ("indices", "values", "dense_shape")}
    return results


def compare(model, given, expected):
    found = model.run(given)
    assert set(found) == set(expected)
    for name, want in expected.items():
        want = np.asarray(want, object if isinstance(want, bytes) else None)
        assert found[name].dtype == want.dtype and found[name].shape == want.shape, name
        same = np.array_equal(found[name], want) if want.dtype.kind not in "f" else np.allclose(found[name], want, 1e-6, equal_nan=True)
        assert same, f"{name}\n{found[name]}\n{want}"


def saved(tf, folder, make, *specs):
    class Model(tf.Module):
        @tf.function(input_signature=list(specs))
        def __call__(self, *given):
            return make(tf, *given)

    model = Model()
    tf.saved_model.save(model, str(folder))
    return model


@pytest.mark.parametrize("open_sizes", (False, True))
def test_texts(tmp_path, open_sizes):
    import tensorflow as tf

    names, arrays = ("x", "numbers", "reals"), (TEXTS, NUMBERS, REALS)
    specs = [tf.TensorSpec([None] if open_sizes else [len(list_)], tf.string, name) for name, list_ in zip(names, arrays, strict=True)]
    model = saved(tf, tmp_path / "saved", text_cases, *specs)
    expected = {name: value.numpy() for name, value in model(*map(tf.constant, arrays)).items()}
    compare(cairn.load(str(tmp_path / "saved")), {name: np.array(list_, object) for name, list_ in zip(names, arrays, strict=True)}, expected)


def test_sparse_and_ragged_tensors(tmp_path, command):
    import tensorflow as tf

    specs = [tf.TensorSpec([None, 2], tf.int64, "indices"), tf.TensorSpec([None], tf.float32, "values"), tf.TensorSpec([2], tf.int64, "shape"), tf.TensorSpec([None], tf.string, "words")]
    model = saved(tf, tmp_path / "saved", sparse_cases, *specs)
    arrays = [np.array(SPARSE[0], np.int64), np.array(SPARSE[1], np.float32), np.array(SPARSE[2], np.int64), np.array(WORDS[1], object)]
    expected = {name: value.numpy() for name, value in model(*map(tf.constant, arrays)).items()}
    given = dict(zip(("indices", "values", "shape", "words"), arrays, strict=True))
    compare(cairn.load(str(tmp_path / "saved")), given, expected)
    assert command("cairn", "convert", tmp_path / "saved", "-o", "sparse.om").returncode == 0
    compare(cairn.load(str(tmp_path / "sparse.om")), given, expected)


def test_what_a_run_cannot_do_is_said(tmp_path):
    import tensorflow as tf

    def refusal(make, value, match):
        value = np.asarray(value, object if isinstance(value[0], str) else None)
        folder = tmp_path / match[:8].replace(" ", "")
        saved(tf, folder, lambda tf, x: make(x), tf.TensorSpec([None], value.dtype if value.dtype != object else tf.string, "x"))
        with pytest.raises(cairn.Error, match=match):
            cairn.load(str(folder)).run({"x": value})

    refusal(lambda x: tf.strings.to_number(x), ["12", "twelve"], "cannot read 'twelve' as a number")
    refusal(lambda x: tf.strings.substr(x, 5, 1), ["abc"], "position 5 is outside of 'abc', which has 3 bytes")
    refusal(lambda x: tf.io.decode_base64(x), ["a b"], "text is not web-safe base64: 'a b'")
    refusal(lambda x: tf.io.decode_raw(x, tf.int16), ["abc"], "3 bytes are no whole number of elements of i16")
    refusal(lambda x: tf.sparse.to_dense(tf.sparse.reorder(tf.sparse.SparseTensor(x[:, None], x, [3]))), [0, 5], "index 5 of dim 0 is outside of its 3 elements")
    refusal(lambda x: tf.strings.regex_replace(x, r"\pL", ""), ["a"], "Unicode classes are not supported")
