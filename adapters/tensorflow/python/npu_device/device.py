"""Opening the device: from then on functions carry the NpuOptimizer entry."""

import contextlib

from tensorflow.core.framework import attr_value_pb2

from npu_bridge import engine, observe, options
from npu_device.configs import GlobalOptions, global_options

_opened = {}


class NpuDeviceHandle:
    def __init__(self, device_index, values):
        self.device_index = device_index
        self.values = values

    def as_default(self):
        """For the rest of the process, also as a context manager."""
        fields = {}
        for key, value in self.values.items():
            option = options.BY_KEY[key]
            options.note(option, value)
            fields[key] = attr_value_pb2.AttrValue(**{option.kind: str(value).encode() if option.kind == "s" else value})
        options.check_together(self.values)
        engine.add_to_functions(fields)
        if engine.library():
            observe.begin(self.values)
        return contextlib.nullcontext(self)

    def name(self):
        return f"/job:localhost/replica:0/task:0/device:NPU:{self.device_index}"


def open(device_index=None):  # noqa: A001  the platform's name
    """The processor, as device 0; `device_index` may also be the options."""
    values = (device_index if isinstance(device_index, GlobalOptions) else global_options()).as_dict()
    index = 0 if device_index is None or isinstance(device_index, GlobalOptions) else int(device_index)
    return _opened.setdefault(index, NpuDeviceHandle(index, values))


def opened():
    return list(_opened.values())
