"""Where a model runs: always on this machine's processor; what is said of devices is kept."""


def _checked(name, value, least=0):
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise TypeError(f"{name} must be int, but got {type(value)}.")
    if value is not None and value < least:
        raise ValueError(f"{name} must be at least {least}, but got {value}.")
    return value


class DeviceInfo:
    """Base of the kinds of devices."""


class CPUDeviceInfo(DeviceInfo):
    """CPUDeviceInfo(enable_fp16=False): enable_fp16 is kept; models compute in the types that they hold."""

    def __init__(self, enable_fp16=False):
        if not isinstance(enable_fp16, bool):
            raise TypeError(f"enable_fp16 must be bool, but got {type(enable_fp16)}.")
        self.enable_fp16 = enable_fp16


class GPUDeviceInfo(CPUDeviceInfo):
    """GPUDeviceInfo(device_id=0, enable_fp16=False)."""

    def __init__(self, device_id=0, enable_fp16=False):
        super().__init__(enable_fp16)
        self.device_id = _checked("device_id", device_id)


class AscendDeviceInfo(DeviceInfo):
    """AscendDeviceInfo(device_id=0, ...): the other settings are kept."""

    def __init__(self, device_id=0, **settings):
        self.device_id = _checked("device_id", device_id)
        self.__dict__.update(settings)


class _Settings:
    """Of the kinds of devices of later releases: context.cpu.thread_num."""

    thread_num, device_id, precision_mode = 0, 0, None


class Context:
    """Context(thread_num=None, inter_op_parallel_num=None, thread_affinity_mode=None, thread_affinity_core_list=None, enable_parallel=False)

    thread_num: how many threads a model uses, by default as many as the process may. The other settings are kept.
    """

    def __init__(self, thread_num=None, inter_op_parallel_num=None, thread_affinity_mode=None, thread_affinity_core_list=None, enable_parallel=False):
        self.thread_num = _checked("thread_num", thread_num)
        self.inter_op_parallel_num = _checked("inter_op_parallel_num", inter_op_parallel_num)
        self.thread_affinity_mode = _checked("thread_affinity_mode", thread_affinity_mode)
        self.thread_affinity_core_list, self.enable_parallel = list(thread_affinity_core_list or ()), enable_parallel
        self.target, self.devices = ["cpu"], []
        self.cpu, self.gpu, self.ascend = _Settings(), _Settings(), _Settings()

    def append_device_info(self, device_info):
        if not isinstance(device_info, DeviceInfo):
            raise TypeError(f"device_info must be DeviceInfo, but got {type(device_info)}.")
        self.devices.append(device_info)

    @property
    def threads(self):
        return self.thread_num or self.cpu.thread_num or 0
