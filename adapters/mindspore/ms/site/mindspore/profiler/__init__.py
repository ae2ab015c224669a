"""Profiler over Cairn's own: times of operators and steps of what runs between its beginning and analyse()."""

import json
import os
import time

import cairn
from cairn.ms import refuse

__all__ = ["Profiler", "profile"]


class Profiler:
    """Records until analyse(), and writes what it saw into output_path."""

    def __init__(self, output_path="./data", start_profile=True, **kwargs):
        for name in kwargs:
            if name not in ("profile_communication", "profile_memory", "parallel_strategy", "aicore_metrics", "l2_cache", "sync_enable",
                            "data_process", "timeline_limit", "op_time", "profile_framework", "subgraph", "is_detail", "is_show_op_path",
                            "optypes_to_deal", "optypes_not_deal", "job_id"):  # fmt: skip
                raise TypeError(f"Profiler() got an unexpected keyword argument '{name}'")
        if not isinstance(output_path, str):
            raise TypeError(f"For 'Profiler', the argument 'output_path' must be str, but got {type(output_path)}.")
        self._folder = os.path.join(os.path.abspath(output_path), "profiler")
        os.makedirs(self._folder, exist_ok=True)
        self._running = self.folder = None
        self._begun = time.time()
        if start_profile:
            self.start()

    def start(self):
        """Begins to record."""
        if self._running is not None:
            raise RuntimeError("The profiler has already started.")
        self._running = cairn.Profiler(output_path=self._folder)
        self._running.__enter__()

    def stop(self):
        """Ends the recording."""
        if self._running is None:
            raise RuntimeError("The profiler has not started, so can not stop.")
        running, self._running = self._running, None
        running.__exit__(None, None, None)
        self.folder = running.folder

    def analyse(self, offline_path=None):
        """Ends the recording; `cairn profile export FOLDER` makes tables and a page of it."""
        if offline_path is not None:
            refuse("Profiler.analyse(offline_path)", "the device's raw files are not read", "analyse()")
        if self._running is not None:
            self.stop()
        with open(os.path.join(self._folder, "profiler_info.json"), "w", encoding="utf-8") as file:
            json.dump({"seconds": time.time() - self._begun, "folder": self.folder, "version": cairn.__version__}, file)

    def op_analyse(self, op_name, device_id=None):
        """Refused: cairn profile shows operators."""
        refuse("Profiler.op_analyse", "is not supported", "`cairn profile` over the folder that analyse() wrote")


def profile(network=None, profile_option="params"):
    """Prints the parameters of a network."""
    for each in network.get_parameters() if network is not None else ():
        print(f"{each.name}: {each.shape} {each.dtype}")
