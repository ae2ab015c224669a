"""HParams: named values that a text can override."""

import json
import re

_ITEM = re.compile(r"\s*(?P<name>[A-Za-z]\w*)(\[(?P<index>\d+)\])?\s*=\s*((?P<list>\[[^\]]*\])|(?P<value>[^,\[]*))\s*(,|$)")


def _cast(name, kind, text):
    """`text` as a value of `kind`."""
    if kind is bool:
        if text in ("true", "True", "1", 1, True):
            return True
        if text in ("false", "False", "0", 0, False):
            return False
        raise ValueError(f"Could not parse hparam '{name}' of type 'bool' with value {text}")
    if kind is int and isinstance(text, float) and not text.is_integer():
        raise ValueError(f"Could not parse hparam '{name}' of type 'int' with value {text}")
    if isinstance(text, str) and kind is not str and not issubclass(kind, (int, float)):
        raise ValueError(f"Could not parse hparam '{name}' of type '{kind.__name__}' with value {text}")
    try:
        return kind(text)
    except (TypeError, ValueError):
        raise ValueError(f"Could not parse hparam '{name}' of type '{kind.__name__}' with value {text}") from None


def parse_values(values, type_map, ignore_unknown=False):
    """{name: value} from "a=1,b=[2,3],c[0]=x"; an indexed name gives {index: value}."""
    result, position = {}, 0
    while position < len(values):
        match = _ITEM.match(values, position)
        if not match:
            raise ValueError(f"Malformed hyperparameter value: {values[position:]}")
        position = match.end()
        name = match["name"]
        if name not in type_map:
            if ignore_unknown:
                continue
            raise ValueError(f"Unknown hyperparameter type for {name}")
        if match["list"] is not None:
            items = [item.strip() for item in match["list"][1:-1].split(",") if item.strip()]
            value = [_cast(name, type_map[name], item) for item in items]
        else:
            value = _cast(name, type_map[name], match["value"].strip())
        if match["index"] is not None:
            if not isinstance(result.setdefault(name, {}), dict):
                raise ValueError(f"Multiple assignments to variable '{name}' in {values}")
            result[name][int(match["index"])] = value
        elif name in result:
            raise ValueError(f"Multiple assignments to variable '{name}' in {values}")
        else:
            result[name] = value
    return result


class HParams:
    """Attributes given by keyword; each keeps its type, and a list stays a list."""

    def __init__(self, hparam_def=None, model_structure=None, **kwargs):
        self._hparam_types = {}
        self._model_structure = model_structure
        if hparam_def:
            raise ValueError("HParams from a HParamDef is not supported; give the values by keyword")
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name, value):
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        many = isinstance(value, (list, tuple))
        if many and not value:
            raise ValueError(f"Multi-valued hyperparameters cannot be empty: {name}")
        self._hparam_types[name] = (type(value[0]) if many else type(value), many)
        setattr(self, name, list(value) if many else value)

    def set_hparam(self, name, value):
        kind, many = self._hparam_types[name]
        if isinstance(value, (list, tuple)) != many:
            raise ValueError("Must not pass a list for single-valued parameter: " + name if not many else
                             "Must pass a list for multi-valued parameter: " + name + ".")  # fmt: skip
        setattr(self, name, [_cast(name, kind, item) for item in value] if many else self._as(name, kind, value))

    @staticmethod
    def _as(name, kind, value):
        return value if value is None or kind is type(None) or callable(value) else _cast(name, kind, value)

    def del_hparam(self, name):
        if hasattr(self, name):
            delattr(self, name)
            del self._hparam_types[name]

    def parse(self, values):
        parsed = parse_values(values, {name: kind for name, (kind, _) in self._hparam_types.items()})
        for name, value in parsed.items():
            if isinstance(value, dict):
                changed = list(getattr(self, name))
                for index, item in value.items():
                    changed[index] = item
                value = changed
            elif self._hparam_types[name][1] and not isinstance(value, list):
                value = [value]
            self.set_hparam(name, value)
        return self

    def override_from_dict(self, values_dict):
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    set_from_map = override_from_dict

    def parse_json(self, values_json):
        return self.override_from_dict(json.loads(values_json))

    def to_json(self, indent=None, separators=None, sort_keys=False):
        values = {name: value for name, value in self.values().items() if not callable(value)}
        return json.dumps(values, indent=indent, separators=separators, sort_keys=sort_keys)

    def values(self):
        return {name: getattr(self, name) for name in self._hparam_types}

    def get(self, key, default=None):
        return getattr(self, key) if key in self._hparam_types else default

    def get_model_structure(self):
        return self._model_structure

    def set_model_structure(self, model_structure):
        self._model_structure = model_structure

    def __contains__(self, key):
        return key in self._hparam_types

    def __str__(self):
        return str(sorted(self.values().items()))

    def __repr__(self):
        return f"HParams({self})"
