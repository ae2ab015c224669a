// Gradient rules of normalisations.
#include "ops/gradients.h"

namespace cairn {

void softmax_rule(GradientContext& g) {
  const Var y = g.y(), dy = g.dy();
  g.set(0, y * (dy - reduce_sum(dy * y, {g.attr.integer("axis")}, true)));
}
void log_softmax_rule(GradientContext& g) {
  g.set(0, g.dy() - exp(g.y()) * reduce_sum(g.dy(), {g.attr.integer("axis")}, true));
}

// The gradients of the returned statistics are added to the result of batch_norm_gradient, which covers that of y.
void batch_norm_training_rule(GradientContext& g) {
  const Var x = g.x(0), scale = g.x(1);
  if (g.has_dy(0)) {
    const Node* made =
        g.b.add_node(op_named("batch_norm_gradient"), {g.dy().value, x.value, scale.value, g.y(1).value, g.y(2).value},
                     g.node().attributes);
    for (size_t i = 0; i < 3; ++i) g.set(i, {g.b, made->result(i)});
  }
  if (!g.wanted(0) || !(g.has_dy(1) || g.has_dy(2))) return;
  Sizes sizes = sizes_of(g, x), column(sizes.size(), Size(g.b, 1));
  const size_t axis = axis_from_start(g.attr.integer("axis"), sizes.size());
  column[axis] = sizes[axis];
  sizes.erase(sizes.begin() + static_cast<int64_t>(axis));
  const Size count = product_of(g.b, sizes, 0, sizes.size());
  const Var centred = cast(x, scale.dtype()) - reshape(g.y(1), column);
  const Var by_mean = reshape(divided(g.dy(1), count), column),
            by_variance = centred * reshape(divided(g.dy(2) * 2, count), column);
  const Var dx = cast(broadcast_to_like(by_mean + by_variance, x), x.dtype());
  g.set(0, g.has_dy(0) ? Var{g.b, g.made(0)} + dx : dx);
}

void layer_norm_rule(GradientContext& g) {
  const Var x = g.x(0), dy = g.dy();
  if (!x.shape().ranked) refuse_gradient(g, "the gradient needs the number of dims, which is not known");
  std::vector<int64_t> axes;
  for (size_t i = axis_from_start(g.attr.integer("axis"), x.shape().rank()); i < x.shape().rank(); ++i)
    axes.push_back(static_cast<int64_t>(i));
  const Var centred = x - reduce_mean(x, axes, true);
  const Var factor = rsqrt(reduce_mean(square(centred), axes, true) + g.attr.number("epsilon"));
  const Var normal = centred * factor;
  g.set(2, sum_to_like(dy, g.x(2)));
  if (g.wanted(1)) g.set(1, sum_to_like(dy * normal, g.x(1)));
  if (!g.wanted(0)) return;
  const Var steep = dy * g.x(1);
  g.set(0, factor * (steep - reduce_mean(steep, axes, true) - normal * reduce_mean(steep * normal, axes, true)));
}

}  // namespace cairn
