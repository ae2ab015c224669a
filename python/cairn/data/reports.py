"""What iterators did, for `cairn profile`: kept while a recording is asked for, and written into its folder."""

import json
import os
import weakref

import cairn

running, _kept = weakref.WeakSet(), []


def requested():
    """Whether the environment asks for a recording, as `cairn profile -- COMMAND` does."""
    return os.environ.get("PROFILING_MODE") == "true"


def keep(iterator):
    """Remembers what an iterator did that stops."""
    if (cairn.Profiler.open or requested()) and (told := iterator.report()):
        _kept.append(told)


def write(folder):
    """What has stopped and what runs, as JSON."""
    told = _kept + [each for each in (iterator.report() for iterator in list(running)) if each]
    if told:
        with open(os.path.join(folder, "host", "data", "data_pipelines.json"), "w", encoding="utf-8") as file:
            json.dump(told, file)
    if not cairn.Profiler.open and not requested():
        _kept.clear()


def write_requested():
    """Into the recording that the environment asks for; a process that ran no model begins one, which holds the pipelines alone."""
    if requested() and _kept:
        cairn._cairn._profile_start(os.environ.get("PROFILING_OPTIONS", "{}"))
        write(cairn._cairn._profile_stop())
