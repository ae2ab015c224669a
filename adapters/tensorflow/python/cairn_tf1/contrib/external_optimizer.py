"""Optimizers outside of the graph, which tf.contrib.opt hands on: SciPy's minimisers move all variables as one vector, by losses and
gradients that a session computes."""

import numpy as np
import tensorflow.compat.v1 as tf


class ExternalOptimizerInterface:
    """A subclass's `_minimize` is given the start as a vector, what computes loss and gradient at a vector, the same for each
    constraint, and bounds; it answers the vector that the variables get."""

    def __init__(self, loss, var_list=None, equalities=None, inequalities=None, var_to_bounds=None, **optimizer_kwargs):
        self.optimizer_kwargs = optimizer_kwargs
        self._vars = list(tf.trainable_variables() if var_list is None else var_list)
        if not self._vars:
            raise ValueError("there is no variable to optimize")
        self._loss, self._slope = loss, self._gradient(loss)
        self._equalities, self._inequalities = ([(each, self._gradient(each)) for each in group or ()]
                                                for group in (equalities, inequalities))  # fmt: skip
        self._bounds = self._all_bounds(var_to_bounds)
        self._sizes = [variable.shape.num_elements() for variable in self._vars]
        self._values = [tf.placeholder(variable.dtype.base_dtype, variable.shape) for variable in self._vars]
        self._assign = tf.group(*[tf.assign(variable, value) for variable, value in zip(self._vars, self._values)])

    def minimize(self, session=None, feed_dict=None, fetches=None, step_callback=None, loss_callback=None, **run_kwargs):
        """Moves the variables. `loss_callback` is called with the values of `fetches` for each loss, `step_callback` with the vector
        after each step of the optimizer."""
        session = session or tf.get_default_session()
        fetches = list(fetches or ())

        def computed(tensors, vector, more=()):
            self._put(session, vector)
            return session.run([*tensors, *more], feed_dict, **run_kwargs)

        def loss_and_slope(vector):
            loss, slope, *values = computed((self._loss, self._slope), vector, fetches)
            if loss_callback is not None:
                loss_callback(*values)
            return np.float64(loss), np.float64(slope)

        def constraint(kind, value, slope):
            return {"type": kind, "fun": lambda vector: np.float64(computed([value], vector)[0]),
                    "jac": lambda vector: np.float64(computed([slope], vector)[0])}  # fmt: skip

        constraints = [constraint("eq", *pair) for pair in self._equalities]
        constraints += [constraint("ineq", *pair) for pair in self._inequalities]
        start = np.concatenate([np.float64(value).ravel() for value in session.run(self._vars)])
        self._put(session, self._minimize(start, loss_and_slope, constraints, self._bounds, step_callback))

    def _minimize(self, start, loss_and_slope, constraints, bounds, step_callback):
        raise NotImplementedError("a subclass says how to minimize")

    def _gradient(self, tensor):
        """Of a scalar a vector, of a vector a matrix."""
        if tensor.shape.rank:
            return tf.stack([self._gradient(each) for each in tf.unstack(tensor)])
        pairs = zip(tf.gradients(tensor, self._vars), self._vars)
        parts = [tf.zeros_like(variable) if slope is None else tf.convert_to_tensor(slope) for slope, variable in pairs]
        return tf.concat([tf.reshape(part, [-1]) for part in parts], 0)

    def _all_bounds(self, given):
        if given is None:
            return None
        known, bounds = {variable.ref(): pair for variable, pair in given.items()}, []
        for variable in self._vars:
            low, high = known.get(variable.ref(), (-np.inf, np.inf))
            shape = variable.shape.as_list()
            bounds.extend(zip(np.broadcast_to(low, shape).ravel(), np.broadcast_to(high, shape).ravel()))
        return bounds

    def _put(self, session, vector):
        parts = np.split(vector, np.cumsum(self._sizes)[:-1])
        session.run(self._assign, {value: part.reshape(value.shape.as_list()) for value, part in zip(self._values, parts)})


class ScipyOptimizerInterface(ExternalOptimizerInterface):
    """scipy.optimize.minimize; `method`, by default L-BFGS-B, and `options`, `tol` and the like are its own."""

    def _minimize(self, start, loss_and_slope, constraints, bounds, step_callback):
        from scipy import optimize

        settings = {"method": "L-BFGS-B", **self.optimizer_kwargs}
        result = optimize.minimize(loss_and_slope, start, jac=True, callback=step_callback, constraints=constraints, bounds=bounds,
                                   **settings)  # fmt: skip
        tf.logging.info("Optimization terminated: %s (loss %s after %s steps)", result.message, result.fun, result.get("nit"))
        return result.x
