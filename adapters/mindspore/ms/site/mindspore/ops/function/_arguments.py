"""What the arguments of functions that are primitives are called, for calls by keyword; others go by the names of their own."""

NAMES = {
    "x": "abs accumulate_n acos acosh addn asin asinh atan atanh bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1 bessel_k0 "
    "bessel_k0e bessel_k1 bessel_k1e bessel_y0 bessel_y1 ceil cos cosh erf erfc exp expm1 fast_gelu floor hardswish inv invert isfinite "
    "isnan log log1p log_matrix_determinant logical_not matrix_determinant mish neg nonzero relu relu6 round sin sinc sinh softsign sqrt "
    "square tan unique",
    "x, y": "add atan2 bitwise_and bitwise_or bitwise_xor equal floor_div floor_mod ge gt le less logical_and logical_or maximum minimum mul "
    "ne pow sub truncate_div truncate_mod xdivy xlogy",
    "input_x": "diag dyn_shape hardsigmoid ones_like population_count rank scalar_to_array selu shape sigmoid size tanh trunc tuple_to_array",
    "input_x, indices, updates": "scatter_add scatter_div scatter_max scatter_min scatter_mul scatter_update tensor_scatter_add "
    "tensor_scatter_div tensor_scatter_max tensor_scatter_min tensor_scatter_mul tensor_scatter_sub",
    "x1, x2": "gcd ger hypot lcm",
    "variable, value": "assign assign_add assign_sub",
    "x, segment_ids, num_segments": "unsorted_segment_max unsorted_segment_min unsorted_segment_prod",
    "input_x, segment_ids, num_segments": "unsorted_segment_sum",
    "input_data, x1, x2, value": "addcdiv addcmul",
    "input_x, input_y": "same_type_shape scalar_cast",
    "input_x, bias": "bias_add",
    "input_x, axis": "expand_dims",
    "type, shape, value": "fill",
    "x, value": "fills",
    "input_params, input_indices, axis": "gather",
    "x, dim, index": "gather_d",
    "input_x, indices": "gather_nd",
    "x, values": "heaviside",
    "start, end, weight": "lerp",
    "start, stop, num": "linspace",
    "input_x, mask, value": "masked_fill",
    "x, mask": "masked_select",
    "shape, type": "ones",
    "x, weight": "prelu",
    "input_x, input_shape": "reshape",
    "indices, updates, shape": "scatter_nd",
    "cond, x, y": "select",
    "input_x, begin, size": "slice",
    "input_x, multiples": "tile",
    "input_x, input_perm": "transpose",
    "x, pad_num": "unique_with_pad",
    "matrix, rhs": "matrix_solve",
}


def name(functions):
    """Writes the names into the primitives among the functions."""
    for arguments, whose in NAMES.items():
        for each in whose.split():
            functions[each].arguments = tuple(arguments.split(", "))
