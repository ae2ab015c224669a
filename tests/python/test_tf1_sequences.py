"""Sequences, images and tables of tf.contrib in the TensorFlow 1 layer, against values derived by hand."""

import itertools

import numpy as np
import pytest
from tf1_graphs import fresh_graph, tf, value_of  # noqa: F401

from tensorflow.contrib import rnn, seq2seq

contrib = tf.contrib


# Sequences


def test_sequence_loss_by_hand():
    logits = np.log([[[0.7, 0.3], [0.2, 0.8]], [[0.5, 0.5], [0.9, 0.1]]]).astype(np.float32)
    targets, weights = [[0, 1], [1, 0]], [[1.0, 1.0], [1.0, 0.0]]
    args = (tf.constant(logits), tf.constant(targets), tf.constant(weights))
    loss = seq2seq.sequence_loss(*args)
    by_batch = seq2seq.sequence_loss(*args, average_across_batch=False)
    each = -np.log([[0.7, 0.8], [0.5, 0.9]]) * weights
    loss, by_batch = value_of([loss, by_batch])
    assert loss == pytest.approx(each.sum() / 3, rel=1e-5)
    np.testing.assert_allclose(by_batch, each.sum(1) / [2, 1], rtol=1e-5)
    steps = contrib.legacy_seq2seq.sequence_loss([tf.constant(logits[:, t]) for t in (0, 1)], [tf.constant([0, 1]), tf.constant([1, 0])],
                                                 [tf.constant([1.0, 1.0]), tf.constant([1.0, 0.0])])  # fmt: skip
    assert value_of(steps) == pytest.approx((each.sum(1) / [2, 1]).mean(), rel=1e-5)


def test_decoding_with_attention_trains_and_infers():
    memory = tf.random.normal([2, 4, 6], seed=1)
    attention = seq2seq.BahdanauAttention(5, memory, memory_sequence_length=[4, 2])
    cell = seq2seq.AttentionWrapper(rnn.GRUCell(5), attention, attention_layer_size=5, alignment_history=True)
    layer = tf.layers.Dense(7, name="out")
    inputs = tf.random.normal([2, 3, 8], seed=2)
    helper = seq2seq.TrainingHelper(inputs, [3, 2])
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(2, tf.float32), layer)
    outputs, state, lengths = seq2seq.dynamic_decode(decoder, impute_finished=True)
    weights = state.alignment_history.stack()
    slopes = tf.gradients(tf.reduce_sum(outputs.rnn_output), tf.trainable_variables())
    table = tf.get_variable("table", [7, 8])
    greedy = seq2seq.GreedyEmbeddingHelper(table, [1, 1], 0)
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        inferred, _, many = seq2seq.dynamic_decode(
            seq2seq.BasicDecoder(cell, greedy, cell.zero_state(2, tf.float32), layer), maximum_iterations=5
        )
    output, lengths, weights, slopes, ids, many = value_of([outputs.rnn_output, lengths, weights, slopes, inferred.sample_id, many])
    assert output.shape == (2, 3, 7) and lengths.tolist() == [3, 2]
    np.testing.assert_array_equal(output[1, 2], 0)  # past its end
    np.testing.assert_allclose(weights.sum(2)[:2], 1, rtol=1e-5)
    np.testing.assert_array_equal(weights[:, 1, 2:], 0)  # past the memory's end
    assert all(np.abs(slope).max() > 0 for slope in slopes) and ids.shape[0] == 2 and many.max() <= 5


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_beam_search_finds_the_likeliest_of_all_sequences(penalty):
    words, end, steps, beams = 4, 0, 3, 16  # as many beams as there are prefixes: nothing is lost on the way
    logits = np.random.RandomState(5).randn(steps, words, words).astype(np.float32)  # of the next word, by step and the one before

    class Chain(tf.nn.rnn_cell.RNNCell):
        state_size, output_size = 1, words

        def call(self, inputs, state):
            return tf.matmul(inputs, tf.constant(logits)[tf.cast(state[0, 0], tf.int32)]), state + 1.0

    logs = logits - np.logaddexp.reduce(logits, 2, keepdims=True)

    def best(start):
        found = []
        for ids in itertools.product(range(words), repeat=steps):
            length = ids.index(end) + 1 if end in ids else steps
            if any(word != end for word in ids[length:]):
                continue
            score = sum(logs[step, before, word] for step, before, word in zip(range(steps), (start, *ids), ids[:length]))
            found.append((score / ((5 + length) / 6) ** penalty, ids))
        return sorted(found, reverse=True)[:6]

    decoder = seq2seq.BeamSearchDecoder(
        Chain(), tf.eye(words), [1, 3], end, seq2seq.tile_batch(tf.zeros([2, 1]), beams), beams, length_penalty_weight=penalty
    )
    outputs, state, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=steps)
    found, scores, counted = value_of([outputs.predicted_ids, outputs.beam_search_decoder_output.scores, state.cell_state])
    for row, start in enumerate((1, 3)):
        expected = best(start)
        assert [tuple(ids) for ids in found[row].T[:6]] == [ids for _, ids in expected]
        np.testing.assert_allclose(scores[row, -1, :6], [score for score, _ in expected], rtol=1e-5)
    assert (counted == steps).all()


def test_gather_tree_by_hand():
    ids = [[[5, 7, 6]], [[8, 9, 1]], [[2, 3, 4]]]  # [time, batch, beams]; 1 ends
    parents = [[[0, 0, 0]], [[1, 0, 2]], [[0, 2, 1]]]
    found = value_of(seq2seq.gather_tree(ids, parents, [3], 1))
    assert found[:, 0].T.tolist() == [[7, 8, 2], [6, 1, 1], [5, 9, 4]]
    assert value_of(seq2seq.gather_tree(ids, parents, [2], 1))[:, 0].T.tolist() == [[7, 8, 1], [5, 9, 1], [6, 1, 1]]


def test_luong_scores_and_tiling_by_hand():
    memory = np.array([[[1.0, 0.0], [0.0, 2.0]]], np.float32)
    attention = seq2seq.LuongAttention(2, tf.constant(memory))
    kernel = tf.trainable_variables()[0]
    alignments, _ = attention(tf.constant([[1.0, 1.0]]), None)
    tiled = seq2seq.tile_batch(tf.constant([[1], [2]]), 2)
    alignments, w, tiled = value_of([alignments, kernel, tiled])
    scores = memory[0] @ w @ np.ones(2)
    np.testing.assert_allclose(alignments[0], np.exp(scores) / np.exp(scores).sum(), rtol=1e-5)
    assert tiled.tolist() == [[1], [1], [2], [2]]


def test_parts_of_a_graph_are_walked_copied_and_rewired():
    editor = contrib.graph_editor
    x = tf.placeholder(tf.float32, [2], "x")
    w = tf.Variable([2.0, 3.0], name="w")
    hidden = tf.tanh(x * w, "hidden")
    y = tf.reduce_sum(hidden * hidden, name="y")
    with tf.control_dependencies([y.op]):
        z = y + 1.0
    ops = editor.get_backward_walk_ops([y], stop_at_ts=[x, w.op.outputs[0]])
    names = {op.name for op in ops}
    assert {"y", "hidden", "mul"} <= names and "x" not in names
    ahead = {op.name for op in editor.get_forward_walk_ops([hidden.op], within_ops=ops)}
    assert ahead == {"hidden", "mul_1", "y"} and "hidden" not in {op.name for op in editor.get_forward_walk_ops([hidden.op], False)}
    assert [t.name for t in editor.filter_ts_from_regex(ops, "^hidden$")] == ["hidden:0"]
    assert [op.name for op in editor.filter_ops_from_regex(ops, "hid")] == ["hidden"]
    copied, info = editor.copy_with_input_replacements(editor.sgv([hidden.op, y.op, *hidden.consumers()]), {hidden.op.inputs[0]: x})
    other = info.transformed(y)
    assert len(copied.ops) == 3 and other.op.name != "y" and info.transformed(x) is None
    values = value_of([y, other, z], {x: [0.5, 1.0]})
    np.testing.assert_allclose(values, [v := (np.tanh([1.0, 3.0]) ** 2).sum(), (np.tanh([0.5, 1.0]) ** 2).sum(), v + 1], rtol=1e-6)
    assert editor.reroute_ts([other], [y], can_modify=[z.op]) == 1
    assert value_of(z, {x: [0.5, 1.0]}) == pytest.approx(values[1] + 1)


def test_crf_by_enumeration():
    random = np.random.RandomState(3)
    scores, moves = random.randn(2, 3, 2).astype(np.float32), random.randn(2, 2).astype(np.float32)
    tags, lengths = np.array([[0, 1, 1], [1, 0, 0]]), np.array([3, 2])
    likelihood, _ = contrib.crf.crf_log_likelihood(tf.constant(scores), tf.constant(tags), tf.constant(lengths), tf.constant(moves))
    best, top = contrib.crf.crf_decode(tf.constant(scores), tf.constant(moves), tf.constant(lengths))
    likelihood, best, top = value_of([likelihood, best, top])
    for row, length in enumerate(lengths):
        total = {}
        for path in np.ndindex(*[2] * length):
            total[path] = sum(scores[row, t, tag] for t, tag in enumerate(path)) + sum(moves[a, b] for a, b in zip(path, path[1:]))
        norm = np.log(sum(np.exp(value) for value in total.values()))
        assert likelihood[row] == pytest.approx(total[tuple(tags[row, :length])] - norm, rel=1e-4)
        winner = max(total, key=total.get)
        assert tuple(best[row, :length]) == winner and top[row] == pytest.approx(total[winner], rel=1e-5)
    assert contrib.crf.viterbi_decode(scores[0], moves)[0] == best[0].tolist()


# Images, tables


def test_image_transforms():
    image = tf.reshape(tf.range(9.0), [1, 3, 3, 1])
    turned = contrib.image.rotate(image, np.pi / 2)
    moved = contrib.image.translate(image, [1, 0])
    turned, moved = value_of([turned, moved])
    np.testing.assert_array_equal(turned[0, :, :, 0], np.rot90(np.arange(9).reshape(3, 3)))
    np.testing.assert_array_equal(moved[0, :, :, 0], [[0, 0, 1], [0, 3, 4], [0, 6, 7]])


def test_lookup_tables():
    table = contrib.lookup.index_table_from_tensor(tf.constant(["a", "b"]), num_oov_buckets=1)
    back = contrib.lookup.index_to_string_table_from_tensor(tf.constant(["a", "b"]))
    numbers, words = table.lookup(tf.constant(["b", "x"])), back.lookup(tf.constant([1, 5], tf.int64))
    numbers, words = value_of([numbers, words])
    assert numbers.tolist() == [1, 2] and words.tolist() == [b"b", b"UNK"]


def test_predictor_reads_a_saved_model(tmp_path):
    x = tf.placeholder(tf.float32, [None])
    with tf.Session() as sess:
        tf.saved_model.simple_save(sess, str(tmp_path / "m"), {"x": x}, {"y": x * 2})
    double = contrib.predictor.from_saved_model(str(tmp_path / "m"))
    np.testing.assert_array_equal(double({"x": [1, 2]})["y"], [2, 4])
    with pytest.raises(ValueError, match="unexpected keys"):
        double({"z": [1]})
