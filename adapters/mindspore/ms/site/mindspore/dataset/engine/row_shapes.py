"""Shapes that change from row to row: what they are, as found and as a script tells them."""


def _shapes(dataset):
    """[[shape of each row] of each column]"""
    columns = [list(each) for each in zip(*([list(value.shape) for value in row] for row in dataset.rows()))]
    for shapes in columns:
        for each in shapes:
            if len(each) != len(shapes[0]):
                raise RuntimeError(f"Inconsistent shapes, expect same shape for each data row, last time shapes: {shapes[0]}, current: {each}.")
    return columns


def _one_size(sizes, otherwise):
    return sizes[0] if len(set(sizes)) == 1 else otherwise


def told(dataset, dynamic, estimate):
    """Shapes with None, or of told columns -1, for sizes that change."""
    if not isinstance(estimate, bool):
        raise TypeError(f"Argument estimate with value {estimate} is not of type [<class 'bool'>], but got {type(estimate)}.")
    if estimate:
        return [[_one_size(sizes, None) for sizes in zip(*shapes)] for shapes in _shapes(dataset)]
    if not dynamic:
        return [list(value.shape) for value in next(dataset.rows(), [])]
    columns = dict(zip(dataset.get_col_names(), _checked(dataset, dynamic)))
    return [[-1 if size is None else size for size in dynamic.get(name, shapes[0])] for name, shapes in columns.items()]


def bounds(dataset, dynamic):
    """(smallest, largest) shapes: a told size that changes begins at 1."""
    if not dynamic:
        raise RuntimeError("dynamic_columns is not set, call set_dynamic_columns() first.")
    least, most = [], []
    for name, shapes in zip(dataset.get_col_names(), _checked(dataset, dynamic)):
        sizes = dynamic.get(name, shapes[0])
        least.append([1 if size is None else size for size in sizes])
        most.append([max(found) for found in zip(*shapes)])
    return least, most


def _checked(dataset, dynamic):
    """The shapes, which are as they are told."""
    names, columns = dataset.get_col_names(), _shapes(dataset)
    for name in dynamic:
        if name not in names:
            raise RuntimeError(f"dynamic column [{name}] does not match any column in dataset: {names}")
    for name, shapes in zip(names, columns):
        sizes = dynamic.get(name)
        for shape in shapes:
            if sizes is not None and (len(sizes) != len(shape) or any(a not in (None, b) for a, b in zip(sizes, shape))):
                raise RuntimeError(f"shape {list(sizes)} does not match dataset column [{name}] with shape {shape}")
            if sizes is None and shape != shapes[0]:
                raise RuntimeError(f"column [{name}] has dynamic shape but not set by set_dynamic_columns(), shapes of last two data: {shapes[0]}, {shape}")
    return columns
