"""Pieces of graphs as exporters write them, with open sizes, equal ONNX Runtime or scikit-learn. Runs in .venv-peers."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import cairn

random = np.random.default_rng(4)
HEAD = '<ir_version: 9, opset_import: ["" : {}{}]>\n'


def f(*shape):
    return random.standard_normal(shape).astype(np.float32)


def check(folder, text, *feeds, opset=18, more="", back=True):
    """The graph at each of these inputs, as it is and written back as ONNX."""
    model = parser.parse_model(HEAD.format(opset, more) + text)
    onnx.save(model, folder / "m.onnx")
    files = [folder / "m.onnx"]
    if back:
        cairn.convert(folder / "m.onnx", folder / "back.onnx")
        onnx.checker.check_model(onnx.load(folder / "back.onnx"), full_check=True)
        files.append(folder / "back.onnx")
    wanted = [onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"]).run(None, each) for each in feeds for file in files]
    loaded = cairn.load(folder / "m.onnx")
    found = [list(loaded.run(each).values()) for each in feeds for _ in files]
    for mine, theirs in zip(found, wanted, strict=True):
        for one, other in zip(mine, theirs, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("opset", [13, 18])
def test_a_branch_that_asks_for_a_known_rank_is_none(opset, tmp_path):
    """torch asks so before it scatters, and each branch has another rank."""
    text = """g (float[N,2] x, int64[N,2] at) => (float[N,2] y) {
      s = Shape(x) z = ConstantOfShape<value=float[1] {0.5}>(s)
      zs = Shape(z) rank = Size(zs) none = Constant<value=int64 {0}>()
      is_number = Equal(rank, none)
      into = If<then_branch=t() => (float[K] a) { flat = Constant<value=int64[1] {-1}>() a = Reshape(z, flat) },
                else_branch=e() => (float[N,2] c) { c = Identity(z) }>(is_number)
      y = ScatterElements<axis=0>(into, at, x) }"""
    order = lambda n: random.permuted(np.tile(np.arange(n), (2, 1)), axis=1).T.copy()  # noqa: E731
    check(tmp_path, text, *[{"x": f(n, 2), "at": order(n)} for n in (3, 6)], opset=opset)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_blocks_of_images_of_any_size(mode, tmp_path):
    text = f"""g (float[N,8,H,W] x) => (float[N,2,A,B] y, float[N,32,C,D] z) {{
      y = DepthToSpace<blocksize=2, mode="{mode}">(x) z = SpaceToDepth<blocksize=2>(x) }}"""
    check(tmp_path, text, {"x": f(2, 8, 4, 6)}, {"x": f(1, 8, 2, 8)}, opset=13)


def test_a_recurrence_cuts_what_goes_into_activations(tmp_path):
    text = """g (float[T,N,4] x, float[2,6,4] w, float[2,6,6] r, float[2,12] b) => (float[T,2,N,6] y, float[2,N,6] last) {
      y, last = RNN<hidden_size=6, direction="bidirectional", clip=0.7>(x, w, r, b) }"""
    weights = {"w": f(2, 6, 4), "r": f(2, 6, 6), "b": f(2, 12)}
    check(tmp_path, text, {"x": f(5, 2, 4), **weights}, {"x": f(3, 4, 4), **weights}, opset=14, back=False)


def test_words_of_any_number_are_counted(tmp_path):
    text = """g (int64[N,T] x) => (float[N,M] y) {
      y = TfIdfVectorizer<mode="TFIDF", min_gram_length=1, max_gram_length=2, max_skip_count=1, ngram_counts=[0,4],
        ngram_indexes=[0,1,2,3,4,5], pool_int64s=[1,2,3,4,1,2,3,4], weights=[1.0,2.0,1.0,0.5,3.0,1.0]>(x) }"""
    check(tmp_path, text, {"x": random.integers(1, 5, (2, 7))}, {"x": random.integers(1, 5, (3, 2))}, {"x": random.integers(1, 5, (1, 1))}, back=False)


def test_labels_of_floats(tmp_path):
    text = """g (float[N] x) => (int64[N] y, float[N] z) {
      y = ai.onnx.ml.LabelEncoder<keys_floats=[3.0,-1.5,0.0,0.25], values_int64s=[7,8,9,10], default_int64=-4>(x)
      z = ai.onnx.ml.LabelEncoder<keys_floats=[3.0,-1.5], values_floats=[0.5,-0.5], default_float=2.0>(x) }"""
    check(tmp_path, text, {"x": np.float32([0.25, -0.0, 3, -1.5, 1.5, 5])}, more=', "ai.onnx.ml" : 3', back=False)


def test_a_sequence_of_parts_that_a_body_maps(tmp_path):
    text = """g (float[N,4] x, int64[K] parts) => (float[M,4] y, float[Q,4] z) {
      s = SplitToSequence<axis=0>(x, parts)
      first = Constant<value=int64 {0}>() one = SequenceAt(s, first)
      t = SequenceInsert(s, one, first) u = SequenceErase(t, first)
      v = SequenceMap<body=b(float[P,4] v, float[N,4] all) => (float[P,4] w) {
        axis = Constant<value=int64[1] {0}>() top = ReduceMax<keepdims=0>(all, axis) w = Add(v, top) }>(u, x)
      y = ConcatFromSequence<axis=0>(v) z = ConcatFromSequence<axis=0>(t) }"""
    check(tmp_path, text, {"x": f(6, 4), "parts": np.int64([1, 2, 3])}, {"x": f(9, 4), "parts": np.int64([4, 5])})


def test_what_is_chosen_and_sorted_comes_back(tmp_path):
    text = """g (float[N,5,4] boxes, float[N,2,5] scores, int64[N,3] at) => (int64[K,3] kept, float[N,3,4] rows, int64[2,J] places) {
      most = Constant<value=int64[1] {3}>() iou = Constant<value=float[1] {0.4}>()
      kept = NonMaxSuppression(boxes, scores, most, iou)
      axes = Constant<value=int64[1] {2}>() a = Unsqueeze(at, axes)
      size = Constant<value=int64[3] {1,1,4}>() wide = Expand(a, size)
      rows = GatherElements<axis=1>(boxes, wide)
      zero = Constant<value=float {0.0}>() s = ReduceMax<keepdims=0, axes=[1]>(scores) up = Greater(s, zero) places = NonZero(up) }"""
    corner = lambda n: np.concatenate([c := np.abs(f(n, 5, 2)), c + 1], 2)  # noqa: E731
    check(tmp_path, text, *[{"boxes": corner(n), "scores": f(n, 2, 5), "at": random.integers(0, 5, (n, 3))} for n in (1, 3)], opset=17)


def test_branches_in_a_mapped_body_hang_on_constants_outside(tmp_path):
    """torch's exporter makes images of three dims so; the other branch does not fit what is given."""
    text = """g (float[2,3] x) => (float[2,3,2] y) <int64 two = {2}, int64[1] last = {-1}, int64 none = {0}> {
      parts = SequenceConstruct(x, x)
      deep = SequenceMap<body=b (float[] part) => (float[] made) {
        shape = Shape(part) rank = Size(shape) wanted = CastLike(two, rank) flat = Equal(rank, wanted)
        made = If<then_branch=t () => (float[] a) { a = Unsqueeze(part, last) }, else_branch=e () => (float[] c) { c = Identity(part) }>(flat)
      }>(parts)
      one = SequenceAt(deep, none) y = Concat<axis=2>(one, one) }"""
    check(tmp_path, text, {"x": f(2, 3)})


def test_nearest_pixels_as_tensorflow_takes_them(tmp_path):
    text = """g (float[N,2,H,W] x) => (float[N,2,A,B] y) <float[0] none = {}, float[4] by = {1.0, 1.0, 1.7, 0.6}> {
      y = Resize<mode="nearest", coordinate_transformation_mode="tf_half_pixel_for_nn", nearest_mode="floor">(x, none, by) }"""
    check(tmp_path, text, {"x": f(1, 2, 5, 9)}, {"x": f(2, 2, 7, 8)}, opset=11)


def test_the_number_of_a_turn_is_a_vector_where_the_body_says_so(tmp_path):
    text = """g (float[N,3] x) => (float[N,1,3] y) <int64 one = {1}, int64[1] zeros = {0}> {
      shape = Shape(x) zero = Constant<value=int64 {0}>() count = Gather(shape, zero) go = Constant<value=bool {1}>()
      y = Loop<body=b (int64[1] i, bool more) => (bool again, float[1,3] row) {
        again = Identity(more) end = Add(i, one) row = Slice(x, i, end, zeros) }>(count, go) }"""
    check(tmp_path, text, {"x": f(4, 3)}, {"x": f(2, 3)}, opset=13)


TEXTS = ["the cat sat on the mat", "a dog barked at the cat", "birds sing, in the Morning sun", "", "x1 and cats_2 are pets"]


@pytest.mark.parametrize("how", [{"ngram_range": (1, 2)}, {"analyzer": "char", "ngram_range": (1, 2)}, {"binary": True}])
def test_a_vectorizer_of_scikit_learn_counts_the_same_words(how, tmp_path):
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx of requirements/venv-peers.txt is not installed")
    from sklearn.feature_extraction.text import CountVectorizer

    if how.get("analyzer") != "char":
        how = {**how, "token_pattern": "[a-zA-Z0-9_]+"}
    model = CountVectorizer(**how).fit(TEXTS)
    types = [("texts", skl2onnx.common.data_types.StringTensorType([None, 1]))]
    made = skl2onnx.to_onnx(model, initial_types=types, target_opset={"": 18, "ai.onnx.ml": 3})
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    for texts in (TEXTS, TEXTS[1:3] + ["cats"]):
        (found,) = cairn.load(tmp_path / "m.onnx").run({"texts": np.array(texts, object)[:, None]}).values()
        np.testing.assert_array_equal(found, model.transform(texts).toarray())
