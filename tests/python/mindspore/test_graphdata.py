"""Graphs in memory, of MindRecord files and of arrays: the example that MindSpore's documentation has, and what follows by counting."""

import mindspore.dataset as ds
import numpy as np
import pytest
from cairn import data
from mindspore.dataset.engine.graphdata import OutputFormat, SamplingStrategy

# the matrix of the documentation: 0 -> 1, 1 -> 2, 2 -> 0, 2 -> 3, 3 -> 1 (there: row 3 of the matrix says 0, the tables say 1)
EDGES = np.array([[0, 1, 2, 2, 3], [1, 2, 0, 3, 1]])


@pytest.fixture
def graph():
    features = {"size": np.arange(8).reshape(4, 2), "name": np.array([5, 6, 7, 8], np.float32)}
    ds.config.set_seed(3)
    return ds.Graph(EDGES, features, {"weight": np.array([1, 1, 1000, 1, 1], np.float32)}, {"whole": np.arange(3)})


def test_neighbours_in_the_three_forms(graph):
    assert graph.get_all_neighbors([0, 1, 2, 3], "0").tolist() == [[0, 1, -1], [1, 2, -1], [2, 0, 3], [3, 1, -1]]
    assert graph.get_all_neighbors([0, 1, 2, 3], "0", OutputFormat.COO).tolist() == [[0, 1], [1, 2], [2, 0], [2, 3], [3, 1]]
    offsets, neighbours = graph.get_all_neighbors([0, 1, 2, 3], "0", output_format=OutputFormat.CSR)
    assert (offsets.tolist(), neighbours.tolist()) == ([0, 1, 2, 4], [1, 2, 0, 3, 1])


def test_edges_features_and_information(graph):
    assert graph.get_nodes_from_edges([2, 4]).tolist() == [[2, 0], [3, 1]]
    assert graph.get_edges_from_nodes([(2, 3), (0, 1)]).tolist() == [3, 0]
    sizes, names = graph.get_node_feature(np.array([[3, -1], [0, 1]]), ["size", "name"])
    assert sizes.tolist() == [[[6, 7], [0, 0]], [[0, 1], [2, 3]]] and names.tolist() == [[8, 0], [5, 6]]
    assert graph.get_edge_feature([2], ["weight"])[0].tolist() == [1000]
    assert graph.get_graph_feature(["whole"])[0].tolist() == [0, 1, 2]
    told = graph.graph_info()
    assert told["node_num"] == {"0": 4} and told["edge_num"] == {"0": 5} and told["node_feature_type"] == ["name", "size"]


def test_what_is_drawn_are_neighbours_by_their_weights(graph):
    rows = graph.get_sampled_neighbors([2] * 300, [2, 1], ["0", "0"])
    assert rows.shape == (300, 5) and set(rows[:, 1:3].ravel()) == {0, 3} and set(rows[:, 3:].ravel()) == {1}
    assert 0.35 < (rows[:, 1] == 0).mean() < 0.65
    heavy = graph.get_sampled_neighbors([2] * 300, [1], ["0"], SamplingStrategy.EDGE_WEIGHT)
    assert (heavy[:, 1] == 0).mean() > 0.97
    assert set(graph.get_neg_sampled_neighbors([2] * 50, 3, "0")[:, 1:].ravel()) == {1}
    assert set(graph.get_neg_sampled_neighbors([0] * 50, 3, "0")[:, 1:].ravel()) == {2, 3}
    walks = graph.random_walk([0] * 50, ["0"] * 4)
    following = {(a, b) for a, b in EDGES.T.tolist()}
    assert walks.shape == (50, 5) and all((a, b) in following for walk in walks.tolist() for a, b in zip(walk, walk[1:]))
    ends = ds.Graph(np.array([[0], [1]])).random_walk([0], ["0"] * 3, default_node=-7)
    assert ends.tolist() == [[0, 1, -7, -7]]


def test_a_graph_of_a_mindrecord_file(tmp_path):
    schema = {"first_id": ("int64", None), "second_id": ("int64", None), "third_id": ("int64", None), "type": ("int32", None),
              "attribute": ("string", None), "node_feature_index": ("int32", [-1]), "edge_feature_index": ("int32", [-1]),
              "node_feature_1": ("float32", [-1]), "edge_feature_1": ("float32", [-1])}  # fmt: skip
    writer, none, zero = data.MindRecordWriter(tmp_path / "graph", schema), np.array([-1]), np.zeros(1, np.float32)
    for number, kind in ((101, 1), (102, 1), (201, 2), (202, 2)):
        writer.write({"first_id": number, "second_id": 0, "third_id": 0, "type": kind, "attribute": "n", "edge_feature_index": none,
                      "node_feature_index": np.array([1]), "node_feature_1": np.array([number, 0.5], np.float32), "edge_feature_1": zero})  # fmt: skip
    for number, (source, target) in enumerate(((101, 201), (101, 202), (202, 102))):
        writer.write({"first_id": number, "second_id": source, "third_id": target, "type": 0, "attribute": "e", "node_feature_index": none,
                      "edge_feature_index": none, "node_feature_1": zero, "edge_feature_1": zero})  # fmt: skip
    writer.commit()
    graph = ds.GraphData(str(tmp_path / "graph"))
    assert graph.get_all_nodes(1).tolist() == [101, 102] and graph.get_all_edges(0).tolist() == [0, 1, 2]
    assert graph.get_all_neighbors([101, 102], 2).tolist() == [[101, 201, 202], [102, -1, -1]]
    assert graph.get_node_feature([202, 101], [1])[0].tolist() == [[202, 0.5], [101, 0.5]]
    assert graph.graph_info()["node_num"] == {1: 2, 2: 2}
    with pytest.raises(RuntimeError, match="no node 7"):
        graph.get_all_neighbors([7], 2)
    with pytest.raises(RuntimeError, match="type 5"):
        graph.get_all_nodes(5)
    with pytest.raises(NotImplementedError, match="local"):
        ds.GraphData(str(tmp_path / "graph"), working_mode="server")


@pytest.mark.parametrize("error, make", [
    (TypeError, lambda: ds.Graph(3)), (ValueError, lambda: ds.Graph(np.array([[0, 1]]))),
    (ValueError, lambda: ds.Graph(EDGES, node_type=["a"])), (ValueError, lambda: ds.Graph(EDGES, {"x": np.zeros(3)})),
    (TypeError, lambda: ds.Graph(EDGES).get_all_nodes(0)), (TypeError, lambda: ds.Graph(EDGES).get_all_neighbors(0, "0")),
    (RuntimeError, lambda: ds.Graph(EDGES).get_edges_from_nodes([(0, 2)])),
    (RuntimeError, lambda: ds.Graph(EDGES).get_sampled_neighbors([0], [1], ["0"], SamplingStrategy.EDGE_WEIGHT)),
])  # fmt: skip
def test_what_is_wrong_is_refused(error, make):
    with pytest.raises(error):
        make()
