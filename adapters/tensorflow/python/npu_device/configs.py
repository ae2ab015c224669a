"""Options of the TensorFlow 2 interface: attributes by the names of the NpuOptimizer entry's keys, some in groups."""

import difflib

from npu_bridge import options

GROUPS = {  # group -> {attribute: key}
    "dump_config": {name: name for name in ("enable_dump", "dump_path", "dump_step", "dump_mode", "enable_dump_debug",
                                            "dump_debug_mode", "dump_data", "dump_layer")},
    "profiling_config": {"enable_profiling": "profiling_mode", "profiling_options": "profiling_options"},
    "aoe_config": {"aoe_mode": "aoe_mode", "work_path": "work_path", "aoe_config_file": "aoe_config_file"},
    "memory_config": {name: name for name in ("atomic_clean_policy", "static_memory_policy",
                                              "memory_optimization_policy")},
    "experimental": {},
}  # fmt: skip


class _Options:
    """Known attributes only; what is set is kept by key."""

    def __init__(self, names, values):
        object.__setattr__(self, "_names", names)
        object.__setattr__(self, "_values", values)

    def __setattr__(self, name, value):
        if name not in self._names:
            close = difflib.get_close_matches(name, self._names, 1)
            raise ValueError(f"global_options: {name} is not a known option" + (f"; is {close[0]} meant?" if close else ""))
        option = options.BY_KEY[self._names[name]]
        if option.kind == "b" and value in (0, 1, "0", "1"):
            value = str(value) in ("1", "True")
        options.check_value(option, value)
        self._values[option.key] = value

    def __getattr__(self, name):
        if name not in self._names:
            raise AttributeError(name)
        key = self._names[name]
        return self._values.get(key, options.BY_KEY[key].default)


class GlobalOptions(_Options):
    def __init__(self):
        values = {}
        plain = {option.key: option.key for option in options.TABLE if option.status != options.OLD}
        super().__init__(plain, values)
        for group, names in GROUPS.items():
            object.__setattr__(self, group, _Options(names, values))

    def as_dict(self):
        return dict(self._values)


_global = GlobalOptions()


def global_options():
    return _global
