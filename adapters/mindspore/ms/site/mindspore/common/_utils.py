"""What is unknown of shapes before a run: -1 is a size, -2 the number of sizes."""


def is_shape_unknown(shape):
    return any(each < 0 for each in shape)


def is_dim_unknown(shape):
    return any(each == -2 for each in shape)
