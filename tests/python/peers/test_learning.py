"""ai.onnx.ml: models of scikit-learn by skl2onnx equal scikit-learn; random ensembles of trees equal ONNX Runtime's. Runs in .venv-peers."""

import warnings

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from sklearn import calibration, cluster, compose, decomposition, discriminant_analysis, ensemble, feature_selection
from sklearn import gaussian_process, impute, linear_model, mixture, multiclass, naive_bayes, neighbors, neural_network
from sklearn import pipeline, preprocessing, svm, tree
from sklearn.datasets import make_classification, make_regression

import cairn

warnings.filterwarnings("ignore")
ROWS = 101
TWO = make_classification(300, 8, n_informative=5, random_state=0)
THREE = make_classification(300, 8, n_informative=5, n_classes=3, random_state=1)
TEXTS = (THREE[0], np.array(["ant", "bee", "cat"])[THREE[1]])
REAL = make_regression(300, 8, noise=3, random_state=0)
REAL = (REAL[0], REAL[1] / 50)
HOLES = (np.where(np.random.RandomState(0).random(THREE[0].shape) < 0.1, np.nan, THREE[0]), THREE[1])


def mixed():
    """Columns with holes, others scaled and others in bins, then a forest."""
    holes = pipeline.make_pipeline(impute.SimpleImputer(), preprocessing.StandardScaler())
    bins = preprocessing.KBinsDiscretizer(4, encode="ordinal")
    columns = compose.ColumnTransformer([("holes", holes, [0, 1, 2]), ("bins", pipeline.make_pipeline(impute.SimpleImputer(), bins), [5, 6])])
    return pipeline.make_pipeline(columns, ensemble.RandomForestClassifier(10, random_state=0))


linear, trees, dense = linear_model.LogisticRegression, tree.DecisionTreeClassifier, neural_network
MODELS = {
    "logistic": (lambda: linear(), TWO),
    "logistic, texts": (lambda: linear(), TEXTS),
    "linear svc": (lambda: svm.LinearSVC(), THREE),
    "sgd": (lambda: linear_model.SGDClassifier(loss="log_loss", random_state=0), THREE),
    "perceptron": (lambda: linear_model.Perceptron(), TWO),
    "lasso": (lambda: linear_model.Lasso(), REAL),
    "poisson": (lambda: linear_model.PoissonRegressor(), (REAL[0], np.abs(REAL[1]))),
    "svc, three": (lambda: svm.SVC(), THREE),
    "svc, linear": (lambda: svm.SVC(kernel="linear"), TEXTS),
    "svc, probabilities": (lambda: svm.SVC(probability=True, random_state=0), TWO),
    "svc, polynomial": (lambda: svm.SVC(probability=True, kernel="poly", random_state=0), THREE),
    "svr": (lambda: svm.SVR(), REAL),
    "svr, sigmoid": (lambda: svm.SVR(kernel="sigmoid"), REAL),
    "nu svr": (lambda: svm.NuSVR(kernel="linear"), REAL),
    "one class": (lambda: svm.OneClassSVM(), (TWO[0], None)),
    "tree": (lambda: trees(max_depth=6), TWO),
    "tree, texts": (lambda: trees(), TEXTS),
    "forest": (lambda: ensemble.RandomForestClassifier(30), TWO),
    "forest, three": (lambda: ensemble.RandomForestClassifier(30), THREE),
    "forest, numbers": (lambda: ensemble.RandomForestRegressor(30), REAL),
    "extra trees": (lambda: ensemble.ExtraTreesRegressor(20), REAL),
    "boosting": (lambda: ensemble.GradientBoostingClassifier(n_estimators=20), TWO),
    "boosting, three": (lambda: ensemble.GradientBoostingClassifier(n_estimators=20), THREE),
    "boosting, numbers": (lambda: ensemble.GradientBoostingRegressor(n_estimators=20), REAL),
    "ada": (lambda: ensemble.AdaBoostClassifier(n_estimators=10), THREE),
    "bagging": (lambda: ensemble.BaggingClassifier(n_estimators=5), THREE),
    "voting": (lambda: ensemble.VotingClassifier([("a", linear()), ("b", trees(max_depth=3))], voting="soft", flatten_transform=False), THREE),
    "stacking": (lambda: ensemble.StackingRegressor([("a", linear_model.Ridge()), ("b", tree.DecisionTreeRegressor(max_depth=3))]), REAL),
    "isolation": (lambda: ensemble.IsolationForest(n_estimators=10), (TWO[0], None)),
    "neighbours": (lambda: neighbors.KNeighborsClassifier(), THREE),
    "bayes": (lambda: naive_bayes.GaussianNB(), THREE),
    "bernoulli": (lambda: naive_bayes.BernoulliNB(), THREE),
    "perceptrons": (lambda: dense.MLPClassifier((16,), max_iter=50), THREE),
    "perceptrons, numbers": (lambda: dense.MLPRegressor(hidden_layer_sizes=(16,), max_iter=50), REAL),
    "discriminants": (lambda: discriminant_analysis.LinearDiscriminantAnalysis(), THREE),
    "discriminants, quadratic": (lambda: discriminant_analysis.QuadraticDiscriminantAnalysis(reg_param=0.1), THREE),
    "one against all": (lambda: multiclass.OneVsRestClassifier(linear()), THREE),
    "calibrated": (lambda: calibration.CalibratedClassifierCV(linear()), TWO),
    "means": (lambda: cluster.KMeans(3, n_init=2), (TWO[0], None)),
    "mixture": (lambda: mixture.GaussianMixture(2, reg_covar=1e-2), (TWO[0], None)),
    "gaussian process": (lambda: gaussian_process.GaussianProcessRegressor(), (REAL[0][:40], REAL[1][:40])),
    "pipeline": (mixed, HOLES),
    **{
        type(each).__name__ + str(i): (lambda each=each: each, THREE)
        for i, each in enumerate([
            preprocessing.StandardScaler(), preprocessing.MinMaxScaler(), preprocessing.MaxAbsScaler(), preprocessing.RobustScaler(),
            preprocessing.Normalizer("l1"), preprocessing.Normalizer("l2"), preprocessing.Normalizer("max"), preprocessing.Binarizer(),
            preprocessing.PolynomialFeatures(2), preprocessing.PowerTransformer(), preprocessing.QuantileTransformer(n_quantiles=20),
            decomposition.PCA(3), decomposition.TruncatedSVD(3), feature_selection.SelectKBest(k=3),
            pipeline.make_union(preprocessing.StandardScaler(), decomposition.PCA(2))])
    },
}  # fmt: skip


def answers(model, x):
    """What scikit-learn says, in the order of the file's outputs."""
    if not hasattr(model, "predict"):
        return [model.transform(x)]
    found = [model.predict(x)]
    for more in ("predict_proba", "decision_function"):
        if hasattr(model, more) and not hasattr(model, "offset_"):
            second = getattr(model, more)(x)
            return [*found, second if second.ndim == 2 else np.stack([-second, second], 1)]
    return found


def same(found, wanted):
    found = np.asarray(found)
    if found.dtype.kind in "OSU":
        return found.astype(str).ravel().tolist() == wanted.astype(str).tolist()
    found = found.reshape(wanted.shape)
    if wanted.dtype.kind in "biu":
        return np.array_equal(found, wanted)
    return np.abs(found - wanted).max() <= 1e-4 * wanted.std()


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_scikit_learn_equals_scikit_learn(name, tmp_path):
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx of requirements/venv-peers.txt is not installed")
    make, (x, y) = MODELS[name]
    x, model = x.astype(np.float32), make()
    model.fit(x, y)
    x = x[:ROWS]
    with_table = hasattr(model, "predict_proba") and y is not None and not hasattr(model, "steps")
    options = {id(model): {"zipmap": False}} if with_table else None
    file = tmp_path / "model.onnx"
    made = skl2onnx.to_onnx(model, x[:1], options=options, target_opset={"": 18, "ai.onnx.ml": 3})
    file.write_bytes(made.SerializeToString())
    loaded = cairn.load(file)
    found = loaded.run({loaded.inputs[0].name: x})
    for output, wanted in zip(loaded.outputs, answers(model, x), strict=False):
        assert same(found[output.name], np.asarray(wanted)), output.name


def random_trees(random, prefix, targets, missing, modes):
    """Attributes of three trees over five features."""
    nodes = {key: [] for key in ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids", "values", "modes")}
    leaves = {key: [] for key in ("treeids", "nodeids", "ids", "weights")}
    for number in range(3):
        count = 0
        open_nodes = [(0, 0)]
        while open_nodes:
            node, depth = open_nodes.pop()
            leaf = depth > 5 or (depth > 0 and random.random() < 0.3)
            children = (0, 0) if leaf else (count + 1, count + 2)
            if not leaf:
                count += 2
                open_nodes += [(child, depth + 1) for child in children]
            row = (number, node, int(random.integers(5)), *children, float(random.integers(-2, 3)) / 2, "LEAF" if leaf else random.choice(modes))
            for key, value in zip(nodes, row, strict=True):
                nodes[key].append(value)
            if leaf:
                for target in range(targets):
                    for key, value in zip(leaves, (number, node, target, float(random.normal())), strict=True):
                        leaves[key].append(value)
    made = {f"nodes_{key}": value for key, value in nodes.items()} | {f"{prefix}_{key}": value for key, value in leaves.items()}
    made["nodes_missing_value_tracks_true"] = [int(random.integers(2)) if missing else 0 for _ in nodes["modes"]]
    return made


def both(node, x, outputs, tmp_path):
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 5])], outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)], ir_version=8)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    theirs = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
    found = cairn.load(tmp_path / "m.onnx").run({"x": x})
    return [found[each.name] for each in outputs], theirs


def rows(random):
    x = np.round(random.normal(size=(37, 5)) * 2) / 2
    x[random.random(x.shape) < 0.05] = np.nan
    return x.astype(np.float32)


MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


@pytest.mark.parametrize("seed", range(24))
def test_random_trees_equal_those_of_onnx_runtime(seed, tmp_path):
    random = np.random.default_rng(seed)
    targets = int(random.integers(1, 4))
    trees = random_trees(random, "target", targets, seed % 2, MODES if seed % 3 else [MODES[seed // 3 % 6]])
    base = {"base_values": random.normal(size=targets).tolist()} if seed % 4 else {}
    how = ["SUM", "AVERAGE", "MIN", "MAX"][seed // 2 % 4]
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=targets, aggregate_function=how, **trees, **base)
    (found,), (wanted,) = both(node, rows(random), [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", targets])], tmp_path)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", range(24))
def test_random_classifying_trees_equal_those_of_onnx_runtime(seed, tmp_path):
    """Of two classes with a score each, ONNX Runtime's labels are 0 and 1 whatever the labels are; here they follow the scores."""
    random = np.random.default_rng(seed)
    classes = 2 + seed % 2
    trees = random_trees(random, "class", 1 if seed % 4 == 0 else classes, True, MODES)
    if seed % 8 == 0:
        trees["class_weights"] = [abs(weight) / 3 for weight in trees["class_weights"]]
    how = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"][seed // 4 % (4 if seed % 4 else 2)]
    labels = {"classlabels_strings": ["a", "b", "c"][:classes]} if seed % 3 == 0 else {"classlabels_int64s": [7, -2, 5][:classes]}
    node = helper.make_node("TreeEnsembleClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml", post_transform=how, **trees, **labels)
    kind = TensorProto.STRING if seed % 3 == 0 else TensorProto.INT64
    outputs = [helper.make_tensor_value_info("label", kind, ["n"]), helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", classes])]
    (label, scores), (their_label, their_scores) = both(node, rows(random), outputs, tmp_path)
    if classes == 2 and seed % 4:
        their_label = np.array(list(labels.values())[0])[scores.argmax(1)]
    assert np.asarray(label).astype(str).tolist() == np.asarray(their_label).astype(str).tolist()
    np.testing.assert_allclose(scores, their_scores, rtol=1e-5, atol=1e-5)
