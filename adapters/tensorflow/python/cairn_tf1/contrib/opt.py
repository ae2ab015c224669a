"""tf.contrib.opt: optimizers with decoupled weight decay and relatives of Adam, from their papers' formulas."""

import sys

import tensorflow.compat.v1 as tf

from cairn_tf1.contrib.external_optimizer import ExternalOptimizerInterface, ScipyOptimizerInterface  # noqa: F401


class DecoupledWeightDecayExtension:
    """Takes `weight_decay` * variable off each decayed variable before its step (Loshchilov and Hutter, 2017), once all
    gradients are there: they belong to the variables as they were."""

    def __init__(self, weight_decay, **kwargs):
        self._decay_var_list = None
        self._weight_decay = weight_decay
        super().__init__(**kwargs)

    def minimize(self, loss, global_step=None, var_list=None, gate_gradients=tf.train.Optimizer.GATE_OP,
                 aggregation_method=None, colocate_gradients_with_ops=False, name=None, grad_loss=None,
                 decay_var_list=None):  # fmt: skip
        self._only(decay_var_list)
        return super().minimize(
            loss, global_step=global_step, var_list=var_list, gate_gradients=gate_gradients,
            aggregation_method=aggregation_method, colocate_gradients_with_ops=colocate_gradients_with_ops, name=name,
            grad_loss=grad_loss,
        )  # fmt: skip

    def apply_gradients(self, grads_and_vars, global_step=None, name=None, decay_var_list=None):
        if decay_var_list:
            self._only(decay_var_list)
        pairs = list(grads_and_vars)
        gradients = [getattr(gradient, "values", gradient) for gradient, _ in pairs if gradient is not None]
        with tf.control_dependencies(gradients):
            return super().apply_gradients(pairs, global_step=global_step, name=name)

    def _only(self, variables):
        self._decay_var_list = {variable.ref() for variable in variables} if variables else None

    def _decayed(self, var):
        if self._decay_var_list is not None and var.ref() not in self._decay_var_list:
            return tf.no_op()
        decay = tf.convert_to_tensor(self._weight_decay() if callable(self._weight_decay) else self._weight_decay)
        amount = tf.cast(decay, var.dtype.base_dtype) * var
        return var.assign_sub(amount, self._use_locking).op if not hasattr(var, "handle") else var.assign_sub(amount)

    def _decayed_rows(self, var, indices):
        if self._decay_var_list is not None and var.ref() not in self._decay_var_list:
            return tf.no_op()
        decay = tf.convert_to_tensor(self._weight_decay() if callable(self._weight_decay) else self._weight_decay)
        rows = tf.unique(indices).y
        amount = tf.cast(decay, var.dtype.base_dtype) * tf.gather(var, rows)
        return tf.scatter_sub(var, rows, amount, self._use_locking)

    def _apply_dense(self, grad, var):
        with tf.control_dependencies([self._decayed(var)]):
            return super()._apply_dense(grad, var)

    def _resource_apply_dense(self, grad, var):
        with tf.control_dependencies([self._decayed(var)]):
            return super()._resource_apply_dense(grad, var)

    def _apply_sparse(self, grad, var):
        with tf.control_dependencies([self._decayed_rows(var, grad.indices)]):
            return super()._apply_sparse(grad, var)

    def _resource_apply_sparse(self, grad, var, indices):
        with tf.control_dependencies([self._decayed_rows(var, indices)]):
            return super()._resource_apply_sparse(grad, var, indices)


def extend_with_decoupled_weight_decay(base_optimizer):
    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecayExtension, base_optimizer):
        def __init__(self, weight_decay, *args, **kwargs):
            self._decay_var_list = None
            self._weight_decay = weight_decay
            base_optimizer.__init__(self, *args, **kwargs)

    return OptimizerWithDecoupledWeightDecay


class MomentumWOptimizer(DecoupledWeightDecayExtension, tf.train.MomentumOptimizer):
    def __init__(self, weight_decay, learning_rate, momentum, use_locking=False, name="MomentumW", use_nesterov=False):
        super().__init__(weight_decay, learning_rate=learning_rate, momentum=momentum, use_locking=use_locking, name=name,
                         use_nesterov=use_nesterov)  # fmt: skip


class AdamWOptimizer(DecoupledWeightDecayExtension, tf.train.AdamOptimizer):
    def __init__(self, weight_decay, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, use_locking=False,
                 name="AdamW"):  # fmt: skip
        super().__init__(weight_decay, learning_rate=learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon,
                         use_locking=use_locking, name=name)  # fmt: skip


class LazyAdamOptimizer(tf.train.AdamOptimizer):
    """Adam that touches only those rows of a sparse gradient, moments too."""

    def _rows(self, grad, var, indices, scatter_update, scatter_sub):
        beta1_power, beta2_power = (tf.cast(power, var.dtype.base_dtype) for power in self._get_beta_accumulators())
        rate, beta1, beta2, epsilon = (
            tf.cast(value, var.dtype.base_dtype) for value in (self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t)
        )
        rate = rate * tf.sqrt(1 - beta2_power) / (1 - beta1_power)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        new_m = beta1 * tf.gather(m, indices) + (1 - beta1) * grad
        new_v = beta2 * tf.gather(v, indices) + (1 - beta2) * tf.square(grad)
        step = rate * new_m / (tf.sqrt(new_v) + epsilon)
        return tf.group(scatter_sub(var, indices, step), scatter_update(m, indices, new_m), scatter_update(v, indices, new_v))

    def _apply_sparse(self, grad, var):
        return self._rows(grad.values, var, grad.indices, tf.scatter_update, tf.scatter_sub)

    def _resource_apply_sparse(self, grad, var, indices):
        return self._rows(grad, var, indices, tf.scatter_update, tf.scatter_sub)


class _Own(tf.train.Optimizer):
    """An optimizer given by one formula: `_kept` names its slots, `_new` gives (slot values, step)."""

    _kept = ()

    def __init__(self, use_locking, name):
        super().__init__(use_locking, name)

    def _create_slots(self, var_list):
        for var in var_list:
            for slot in self._kept:
                self._zeros_slot(var, slot, slot)

    def _update(self, grad, var):
        slots = [self.get_slot(var, name) for name in self._kept]
        values, step = self._new(grad, var, *slots)
        with tf.control_dependencies([*values, step]):
            return tf.group(tf.assign_sub(var, step), *[tf.assign(slot, value) for slot, value in zip(slots, values)])

    def _apply_dense(self, grad, var):
        return self._update(grad, var)

    _resource_apply_dense = _apply_dense

    def _dense(self, values, indices, var):
        return tf.IndexedSlices(values, indices, tf.cast(tf.shape(var), indices.dtype))

    def _apply_sparse(self, grad, var):
        return self._update(tf.convert_to_tensor(self._dense(grad.values, grad.indices, var)), var)

    def _resource_apply_sparse(self, grad, var, indices):
        return self._update(tf.convert_to_tensor(self._dense(grad, indices, var)), var)


class LARSOptimizer(_Own):
    """Momentum with a rate per variable: eeta |w| / (|g| + weight_decay |w| + epsilon) (You et al., 2017)."""

    _kept = ("momentum",)

    def __init__(self, learning_rate, momentum=0.9, weight_decay=0.0001, eeta=0.001, epsilon=0.0, name="LARSOptimizer",
                 skip_list=None, use_nesterov=False):  # fmt: skip
        super().__init__(False, name)
        self._rate, self._momentum, self._weight_decay = learning_rate, momentum, weight_decay
        self._eeta, self._epsilon, self._skip, self._nesterov = eeta, epsilon, skip_list, use_nesterov

    def _new(self, grad, var, momentum):
        rate = tf.cast(self._rate, grad.dtype)
        if not any(name in var.op.name for name in self._skip or ()):
            norm_w, norm_g = tf.norm(var), tf.norm(grad)
            trust = self._eeta * norm_w / (norm_g + self._weight_decay * norm_w + self._epsilon)
            rate *= tf.where(tf.logical_and(norm_w > 0, norm_g > 0), trust, tf.ones_like(trust))
            grad = grad + self._weight_decay * var
        new = self._momentum * momentum + rate * grad
        return [new], rate * grad + self._momentum * new if self._nesterov else new


class NadamOptimizer(tf.train.AdamOptimizer):
    """Adam with Nesterov momentum (Dozat, 2016)."""

    def _new(self, grad, var):
        b1_power, b2_power = (tf.cast(power, var.dtype.base_dtype) for power in self._get_beta_accumulators())
        rate, b1, b2, epsilon = (
            tf.cast(value, var.dtype.base_dtype) for value in (self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t)
        )
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        new_m, new_v = b1 * m + (1 - b1) * grad, b2 * v + (1 - b2) * tf.square(grad)
        step = rate * tf.sqrt(1 - b2_power) / (1 - b1_power) * (b1 * new_m + (1 - b1) * grad) / (tf.sqrt(new_v) + epsilon)
        with tf.control_dependencies([new_m, new_v, step]):
            return tf.group(tf.assign_sub(var, step), tf.assign(m, new_m), tf.assign(v, new_v))

    def _apply_dense(self, grad, var):
        return self._new(grad, var)

    _resource_apply_dense = _apply_dense


class AdaMaxOptimizer(tf.train.AdamOptimizer):
    """Adam by the largest gradient seen (Kingma and Ba, 2014, section 7)."""

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, use_locking=False, name="AdaMax"):
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)

    def _apply_dense(self, grad, var):
        b1_power = tf.cast(self._get_beta_accumulators()[0], var.dtype.base_dtype)
        rate, b1, b2, epsilon = (
            tf.cast(value, var.dtype.base_dtype) for value in (self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t)
        )
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        new_m, new_v = b1 * m + (1 - b1) * grad, tf.maximum(b2 * v, tf.abs(grad))
        step = rate / (1 - b1_power) * new_m / (new_v + epsilon)
        with tf.control_dependencies([new_m, new_v, step]):
            return tf.group(tf.assign_sub(var, step), tf.assign(m, new_m), tf.assign(v, new_v))

    _resource_apply_dense = _apply_dense


class AddSignOptimizer(_Own):
    """Steps of (alpha + decay sign(g) sign(m)) g (Bello et al., 2017)."""

    _kept = ("m",)

    def __init__(self, learning_rate=0.1, alpha=1.0, beta=0.9, sign_decay_fn=None, use_locking=False, name="AddSignOptimizer"):
        super().__init__(use_locking, name)
        self._rate, self._alpha, self._beta, self._decay = learning_rate, alpha, beta, sign_decay_fn

    def _factor(self):
        return 1.0 if self._decay is None else self._decay(tf.train.get_global_step())

    def _new(self, grad, var, m):
        new = self._beta * m + (1 - self._beta) * grad
        return [new], self._rate * (self._alpha + self._factor() * tf.sign(grad) * tf.sign(new)) * grad


class PowerSignOptimizer(AddSignOptimizer):
    """Steps of base^(decay sign(g) sign(m)) g (Bello et al., 2017)."""

    def __init__(self, learning_rate=0.1, base=2.718281828459045, beta=0.9, sign_decay_fn=None, use_locking=False,
                 name="PowerSignOptimizer"):  # fmt: skip
        super().__init__(learning_rate, base, beta, sign_decay_fn, use_locking, name)

    def _new(self, grad, var, m):
        new = self._beta * m + (1 - self._beta) * grad
        return [new], self._rate * tf.pow(self._alpha, self._factor() * tf.sign(grad) * tf.sign(new)) * grad


class MovingAverageOptimizer(tf.train.Optimizer):
    """Keeps moving averages of what `opt` trains; `swapping_saver()` saves them under the variables' names."""

    def __init__(self, opt, average_decay=0.9999, num_updates=None, sequential_update=True):
        self._optimizer = opt
        self._averages = tf.train.ExponentialMovingAverage(average_decay, num_updates=num_updates)
        self._sequential, self._variables = sequential_update, None
        super().__init__(False, "MovingAverageOptimizer")

    def compute_gradients(self, *args, **kwargs):
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        pairs = list(grads_and_vars)
        train = self._optimizer.apply_gradients(pairs, global_step=global_step, name=name)
        self._variables = [variable for gradient, variable in pairs if gradient is not None]
        with tf.control_dependencies([train] if self._sequential else []):
            return tf.group(train, self._averages.apply(self._variables))

    def get_slot(self, var, name):
        return self._optimizer.get_slot(var, name)

    def get_slot_names(self):
        return self._optimizer.get_slot_names()

    def variables(self):
        return self._optimizer.variables()

    def swapping_saver(self, var_list=None, name="swapping_saver", **kwargs):
        if self._variables is None:
            raise RuntimeError("Must call apply_gradients or minimize before creating the swapping_saver")
        listed = {v.op.name: v for v in (tf.global_variables() if var_list is None else var_list)}
        for variable in self._variables:
            average = self._averages.average(variable)
            if variable.op.name in listed and average.op.name in listed:
                listed[variable.op.name], listed[average.op.name] = average, variable
        return tf.train.Saver(listed, name=name, **kwargs)


def clip_gradients_by_global_norm(gradients_variables, clip_norm=20.0):
    """[(gradient, variable)] with the gradients' joint norm held at `clip_norm`."""
    gradients, variables = zip(*gradients_variables)
    clipped, _ = tf.clip_by_global_norm(gradients, clip_norm)
    return list(zip(clipped, variables))


lazy_adam_optimizer = weight_decay_optimizers = lars_optimizer = sys.modules[__name__]  # the private modules of contrib
