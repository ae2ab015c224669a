"""SequentialCell and CellList: cells in order, whose names are their numbers."""

from collections import OrderedDict

from mindspore.common.tensor import Tensor
from mindspore.nn.cell import Cell


def _checked(cell, owner):
    if not isinstance(cell, Cell):
        raise TypeError(f"For '{owner}', each element should be a Cell, but got {type(cell).__name__}.")
    return cell


def _index(length, index, owner):
    if isinstance(index, Tensor):
        index = int(index)
    if isinstance(index, bool) or not isinstance(index, int):
        raise TypeError(f"For '{owner}', the index should be int or slice, but got {type(index).__name__}.")
    if not -length <= index < length:
        raise IndexError(f"For '{owner}', the index should be in [{-length}, {length}), but got {index}.")
    return index % length


class _Cells:
    """What both have in common; `_prefixed` tells whether children are named by their numbers."""

    def __len__(self):
        return len(self._cells)

    def __iter__(self):
        return iter(list(self._cells.values()))

    def __bool__(self):
        return len(self._cells) != 0

    def _prefixed(self):
        return self._auto_prefix

    def _refill(self, cells):
        """The children anew, those that moved renamed."""
        before, prefix = [id(cell) for cell in self._cells.values()], self._prefix()
        self._cells.clear()
        for index, cell in enumerate(cells):
            known = index < len(before) and before[index] == id(cell)
            if not known and self._prefixed():
                cell.update_parameters_name(f"{prefix}{index}.")
            self._cells[str(index)] = cell
        self._changed()

    def _prefix(self):
        """What stands before the number in the names of the children's parameters."""
        for other_index, other in self._cells.items():
            for path, param in other.parameters_and_names():
                tail = f"{other_index}.{path}"
                if param.name.endswith(tail):
                    return param.name[: -len(tail)]
        return ""

    def set_grad(self, flag=True):
        self.requires_grad = flag
        for cell in self._cells.values():
            cell.set_grad(flag)
        return self

    def _changed(self):
        """After a change of the children."""

    def __getitem__(self, index):
        cells = list(self._cells.values())
        if isinstance(index, slice):
            return self._part(index)
        return cells[_index(len(cells), index, type(self).__name__)]

    def __setitem__(self, index, cell):
        index = _index(len(self), index, type(self).__name__)
        key = list(self._cells)[index]
        _checked(cell, type(self).__name__)
        if self._prefixed():
            cell.update_parameters_name(f"{self._prefix()}{key}.")
        self._cells[key] = cell
        self._changed()

    def __delitem__(self, index):
        cells = list(self._cells.values())
        if isinstance(index, int):
            index = _index(len(cells), index, type(self).__name__)
        elif not isinstance(index, slice):
            raise TypeError(
                f"For '{type(self).__name__}', the index should be int or slice, but got {type(index).__name__}."
            )
        del cells[index]
        self._refill(cells)

    def insert(self, index, cell):
        """Puts the cell before the one of that number."""
        cells = list(self._cells.values())
        if not -len(cells) <= index <= len(cells):
            raise IndexError(
                f"For '{type(self).__name__}', the index should be in [{-len(cells)}, {len(cells)}], but got {index}."
            )
        cells.insert(index, _checked(cell, type(self).__name__))
        self._refill(cells)

    def append(self, cell):
        """Puts the cell behind the last one."""
        name = str(len(self))
        _checked(cell, type(self).__name__)
        if self._prefixed():
            cell.update_parameters_name(f"{self._prefix()}{name}.")
        self._cells[name] = cell
        self._changed()
        return self


class SequentialCell(_Cells, Cell):
    """SequentialCell(*cells), of a list, or of an OrderedDict whose keys name them: each takes the one before's result."""

    def __init__(self, *args):
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            named = args[0].items()
        else:
            cells = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
            named = ((str(i), cell) for i, cell in enumerate(cells))
        for name, cell in named:
            self.insert_child_to_cell(name, _checked(cell, type(self).__name__))
            cell.update_parameters_name(name + ".")
        self._changed()

    def _changed(self):
        self.__dict__["cell_list"] = list(self._cells.values())

    def _prefixed(self):
        return True

    def _part(self, index):
        return type(self)(OrderedDict(list(self._cells.items())[index]))

    def construct(self, input_data):
        for cell in self.cell_list:
            input_data = cell(input_data)
        return input_data


class CellList(_Cells, Cell):
    """CellList(*cells) or of a list: a list of cells that are children."""

    def __init__(self, *args, **kwargs):
        super().__init__(auto_prefix=kwargs.get("auto_prefix", True))
        self.extend(args[0] if len(args) == 1 and isinstance(args[0], (list, tuple, CellList)) else args)

    def _part(self, index):
        made = CellList(auto_prefix=False)
        for i, cell in enumerate(list(self._cells.values())[index]):
            made._cells[str(i)] = cell
        return made

    def extend(self, cells):
        """Puts the cells behind the last one."""
        if not isinstance(cells, (list, tuple, CellList)):
            raise TypeError(f"For 'CellList', the cells to add should be a list, but got {type(cells).__name__}.")
        for cell in cells:
            self.append(cell)
        return self

    def __iadd__(self, cells):
        return self.extend(cells)

    def construct(self, *inputs):
        raise NotImplementedError("CellList has no computation; call its cells")
