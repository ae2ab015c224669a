"""Graphs in memory: nodes, edges, their features, neighbours and walks; from MindRecord files or from arrays."""

from enum import IntEnum

import numpy as np
from cairn import data
from cairn.ms import refuse

from mindspore.dataset.core import config

__all__ = ["Graph", "GraphData", "OutputFormat", "SamplingStrategy"]


class SamplingStrategy(IntEnum):
    """How neighbours are drawn, with replacement."""

    RANDOM = 0
    EDGE_WEIGHT = 1


class OutputFormat(IntEnum):
    """How all neighbours are told: rows filled up with -1, pairs, or offsets and neighbours."""

    NORMAL = 0
    COO = 1
    CSR = 2


def _numbers(values, name, rank=1):
    if not isinstance(values, (list, tuple, np.ndarray)):
        raise TypeError(f"Argument {name} with value {values} is not of type [<class 'list'>, <class 'numpy.ndarray'>], but got {type(values)}.")
    made = np.asarray(values)
    if made.ndim != rank or made.dtype.kind not in "iu":
        raise TypeError(f"{name} should hold integers in {rank} dimensions, but got {made.dtype} in {made.ndim}.")
    return made.astype(np.int64)


class _Part:
    """Nodes or edges: which number stands where, of which type, with which features."""

    def __init__(self, numbers, types, features, what):
        self.numbers, self.types, self.features, self.what = numbers, types, features, what
        self.places = {int(number): place for place, number in enumerate(numbers)}
        if len(self.places) != len(numbers):
            raise RuntimeError(f"Invalid graph, two {what}s have the same number.")

    def of_type(self, kind):
        """Numbers of those of a type, in rising order."""
        if kind not in set(self.types):
            raise RuntimeError(f"Invalid {self.what} type {kind}, the graph has {sorted(set(self.types))}.")
        return np.sort(self.numbers[self.types == kind]).astype(np.int32)

    def place(self, number):
        """Where a number stands."""
        if int(number) not in self.places:
            raise RuntimeError(f"Invalid {self.what}, the graph has no {self.what} {number}.")
        return self.places[int(number)]

    def feature(self, numbers, kind):
        """A feature of each; zeros for -1 and for those that have none."""
        if kind not in self.features:
            raise RuntimeError(f"Invalid {self.what} feature type {kind}, the graph has {sorted(self.features)}.")
        told = self.features[kind]
        like = next(iter(told.values()))
        rows = [np.zeros_like(like) if number == -1 else told.get(self.place(number), np.zeros_like(like)) for number in numbers.ravel()]
        return np.array(rows, like.dtype).reshape(*numbers.shape, *like.shape)


class GraphData:
    """A graph of a MindRecord file with the columns first_id, second_id, third_id, type, attribute and features by number."""

    def __init__(self, dataset_file, num_parallel_workers=None, working_mode="local", hostname="127.0.0.1", port=50051, num_client=1,
                 auto_shutdown=True):
        if working_mode != "local":
            refuse(f"GraphData(working_mode='{working_mode}')", "graphs are not served to other processes", "working_mode='local'")
        rows = list(data.mindrecord(dataset_file).iterate(workers=0, epochs=1))
        nodes, edges = ([row for row in rows if str(row["attribute"]) == kind] for kind in "ne")
        self._settle(_part(nodes, "node"), _part(edges, "edge"), [int(row["second_id"]) for row in edges], [int(row["third_id"]) for row in edges])

    def _settle(self, nodes, edges, sources, targets):
        self._nodes, self._edges, self._ends = nodes, edges, list(zip(sources, targets))
        self._random = np.random.RandomState(config.get_seed() if config.seed_is_fixed() else None)
        self._neighbors, self._between = {}, {}
        for place, (source, target) in enumerate(self._ends):
            nodes.place(source), nodes.place(target)
            self._neighbors.setdefault(source, []).append((target, place))
            self._between[source, target] = int(edges.numbers[place])

    def _of(self, node, kind):
        """[(neighbour of a type, place of the edge)]."""
        self._nodes.place(node)
        return [each for each in self._neighbors.get(int(node), ()) if self._nodes.types[self._nodes.places[each[0]]] == kind]

    def get_all_nodes(self, node_type):
        """Numbers of the nodes of a type."""
        return self._nodes.of_type(self._node_type(node_type))

    def get_all_edges(self, edge_type):
        """Numbers of the edges of a type."""
        return self._edges.of_type(self._edge_type(edge_type))

    def get_nodes_from_edges(self, edge_list):
        """(source, target) of edges."""
        return np.array([self._ends[self._edges.place(each)] for each in _numbers(edge_list, "edge_list")], np.int32).reshape(-1, 2)

    def get_edges_from_nodes(self, node_list):
        """Numbers of the edges from one node to another."""
        found = []
        for source, target in _numbers(node_list, "node_list", 2).tolist():
            if (source, target) not in self._between:
                raise RuntimeError(f"Invalid edge, the graph has none from node {source} to node {target}.")
            found.append(self._between[source, target])
        return np.array(found, np.int32)

    def get_all_neighbors(self, node_list, neighbor_type, output_format=OutputFormat.NORMAL):
        """Each node and its neighbours of a type."""
        nodes, kind = _numbers(node_list, "node_list").tolist(), self._node_type(neighbor_type)
        found = [[target for target, _ in self._of(node, kind)] for node in nodes]
        if output_format == OutputFormat.COO:
            return np.array([(node, each) for node, row in zip(nodes, found) for each in row], np.int32).reshape(-1, 2)
        if output_format == OutputFormat.CSR:
            return (np.cumsum([0, *map(len, found)])[:-1].astype(np.int32), np.array([each for row in found for each in row], np.int32))
        longest = max(map(len, found), default=0)
        return np.array([[node, *row, *[-1] * (longest - len(row))] for node, row in zip(nodes, found)], np.int32)

    def get_sampled_neighbors(self, node_list, neighbor_nums, neighbor_types, strategy=SamplingStrategy.RANDOM):
        """Each node, neighbours drawn of it, neighbours drawn of these, and so on; -1 where there is none."""
        if not isinstance(strategy, SamplingStrategy):
            raise TypeError("Wrong input type for strategy, should be enum of 'SamplingStrategy'.")
        counts, kinds = _numbers(neighbor_nums, "neighbor_nums").tolist(), [self._node_type(each) for each in neighbor_types]
        if len(counts) != len(kinds) or not 1 <= len(counts) <= 6 or min(counts) < 1:
            raise ValueError("neighbor_nums and neighbor_types should be equally long, from 1 to 6, of numbers above 0.")
        rows = []
        for node in _numbers(node_list, "node_list").tolist():
            row, last = [node], [node]
            for count, kind in zip(counts, kinds):
                last = [drawn for each in last for drawn in self._drawn(each, kind, count, strategy)]
                row += last
            rows.append(row)
        return np.array(rows, np.int32)

    def _drawn(self, node, kind, count, strategy):
        choices = self._of(node, kind) if node != -1 else []
        if not choices:
            return [-1] * count
        shares = None
        if strategy == SamplingStrategy.EDGE_WEIGHT:
            weights = np.array([self._weight(place) for _, place in choices], np.float64)
            shares = weights / weights.sum()
        return [choices[each][0] for each in self._random.choice(len(choices), count, p=shares)]

    def _weight(self, place):
        told = self._edges.features.get(self._weight_type, {}).get(place)
        if told is None or np.size(told) != 1 or not float(np.ravel(told)[0]) > 0:
            raise RuntimeError("Invalid edge, drawing by EDGE_WEIGHT needs a weight above 0 of each edge: its first feature.")
        return float(np.ravel(told)[0])

    _weight_type = 1

    def get_neg_sampled_neighbors(self, node_list, neg_neighbor_num, neg_neighbor_type):
        """Each node, and nodes of a type drawn that are not its neighbours; -1 where there is none."""
        kind, rows = self._node_type(neg_neighbor_type), []
        everything = self._nodes.of_type(kind).tolist()
        for node in _numbers(node_list, "node_list").tolist():
            near = {target for target, _ in self._of(node, kind)} | {node}
            far = [each for each in everything if each not in near] or [-1]
            rows.append([node, *self._random.choice(far, neg_neighbor_num)])
        return np.array(rows, np.int32)

    def random_walk(self, target_nodes, meta_path, step_home_param=1.0, step_away_param=1.0, default_node=-1):
        """Walks of node2vec: meta_path tells the type of each step's node; going back weighs 1 / step_home_param, going where no
        edge leads from the node before 1 / step_away_param."""
        kinds, walks = [self._node_type(each) for each in meta_path], []
        for node in _numbers(target_nodes, "target_nodes").tolist():
            walk, before = [node], None
            for kind in kinds:
                choices = [target for target, _ in self._of(walk[-1], kind)] if walk[-1] != default_node else []
                if not choices:
                    walk += [default_node] * (len(kinds) + 1 - len(walk))
                    break
                near = {target for target, _ in self._neighbors.get(before, ())}
                weights = np.array([1.0 if before is None or each in near else 1 / step_home_param if each == before else 1 / step_away_param
                                    for each in choices])  # fmt: skip
                before, step = walk[-1], self._random.choice(len(choices), p=weights / weights.sum())
                walk.append(choices[step])
            walks.append(walk)
        return np.array(walks, np.int32)

    def get_node_feature(self, node_list, feature_types):
        """Features of nodes, an array for each type of feature."""
        return [self._nodes.feature(np.asarray(node_list), kind) for kind in feature_types]

    def get_edge_feature(self, edge_list, feature_types):
        """Features of edges."""
        return [self._edges.feature(np.asarray(edge_list), kind) for kind in feature_types]

    def graph_info(self):
        """Types and numbers of nodes, edges and features."""
        nodes, edges = self._nodes, self._edges
        return {"node_type": sorted(set(nodes.types)), "edge_type": sorted(set(edges.types)),
                "node_num": {kind: int((nodes.types == kind).sum()) for kind in sorted(set(nodes.types))},
                "edge_num": {kind: int((edges.types == kind).sum()) for kind in sorted(set(edges.types))},
                "node_feature_type": sorted(nodes.features), "edge_feature_type": sorted(edges.features)}  # fmt: skip

    def _node_type(self, kind):
        if isinstance(kind, bool) or not isinstance(kind, (int, np.integer)):
            raise TypeError(f"the type of a node or edge is an int, but got {type(kind)}.")
        return int(kind)

    _edge_type = _node_type


def _part(rows, what):
    features = {}
    for place, row in enumerate(rows):
        for kind in np.ravel(row[f"{what}_feature_index"]).tolist():
            if kind > 0:
                features.setdefault(kind, {})[place] = row[f"{what}_feature_{kind}"]
    types = np.array([int(row["type"]) for row in rows])
    return _Part(np.array([int(row["first_id"]) for row in rows], np.int64), types, features, what)


class Graph(GraphData):
    """A graph of arrays: edges [2, count], features and types by name."""

    def __init__(self, edges, node_feat=None, edge_feat=None, graph_feat=None, node_type=None, edge_type=None, num_parallel_workers=None,
                 working_mode="local", hostname="127.0.0.1", port=50051, num_client=1, auto_shutdown=True):
        edges = _numbers(edges, "edges", 2)
        if len(edges) != 2 or edges.shape[1] == 0 or edges.min() < 0:
            raise ValueError(f"edges should have the shape [2, num_edges] and no negative number, but got {list(edges.shape)}.")
        counts = int(edges.max()) + 1, edges.shape[1]
        parts = []
        for what, count, features, types in (("node", counts[0], node_feat, node_type), ("edge", counts[1], edge_feat, edge_type)):
            types = np.array(["0"] * count if types is None else types)
            if types.shape != (count,):
                raise ValueError(f"Input '{what}_type' should be of 1 dimension, and its length should be {count}, but got {types.shape}.")
            for name, values in (features or {}).items():
                if not isinstance(values, np.ndarray) or len(values) != count:
                    raise ValueError(f"the feature '{name}' should be an array of {count} rows, one for each {what}.")
            told = {name: dict(enumerate(values)) for name, values in (features or {}).items()}
            parts.append(_Part(np.arange(count), types, told, what))
        self._features, self._weight_type = dict(graph_feat or {}), next(iter(edge_feat or {}), None)
        self._settle(*parts, *edges.tolist())

    def get_graph_feature(self, feature_types):
        """Features of the graph as a whole."""
        missing = [kind for kind in feature_types if kind not in self._features]
        if missing:
            raise RuntimeError(f"Invalid graph feature type {missing[0]}, the graph has {sorted(self._features)}.")
        return [self._features[kind] for kind in feature_types]

    def graph_info(self):
        """The same, and the features of the graph."""
        return {**super().graph_info(), "graph_feature_type": sorted(self._features)}

    def _node_type(self, kind):
        if not isinstance(kind, str):
            raise TypeError(f"the type of a node or edge is a str, but got {type(kind)}.")
        return kind

    _edge_type = _node_type
