"""Jobs of several processes for tests, on this machine."""

import json
import os
import secrets
import socket
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).parent / "mindspore" / "ranks"


_RESERVED = []


def free_port():
    """A port of the loopback that no other process is given while this one lives; a rank may listen at it all the same."""
    _RESERVED.append(socket.socket())
    _RESERVED[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    _RESERVED[-1].bind(("127.0.0.1", 0))
    return _RESERVED[-1].getsockname()[1]


def alive(pid):
    """Whether the process has not ended; nobody may have asked for its status yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def processes(words, size, timeout=60, cwd=None, shared_memory=True, **variables):
    """The processes of the ranks, which write to pipes. One rank is a process without a job."""
    address, token = f"127.0.0.1:{free_port()}", secrets.token_hex(8)
    made = []
    for rank in range(size):
        own = {**os.environ, **variables}
        for name in ("RANK_ID", "RANK_SIZE", "DEVICE_ID"):
            own.pop(name, None)
        if size > 1:
            job = {"address": address, "token": token, "rank": rank, "size": size, "local_rank": rank, "local_size": size}
            job.update(timeout=timeout, shared_memory=shared_memory)
            own.update(CAIRN_JOB=json.dumps(job), RANK_ID=str(rank), RANK_SIZE=str(size), DEVICE_ID=str(rank))
        made.append(subprocess.Popen(list(map(str, words)), env=own, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    return made


def start(script, size, *arguments, **options):
    """Ranks that run a script of the folder mindspore/ranks by `python -m cairn.ms`."""
    return processes([sys.executable, "-m", "cairn.ms", SCRIPTS / script, *arguments], size, CAIRN_MS_STRICT="1", **options)


def ended(started, seconds=600):
    """[(status, standard output, standard error)] of the ranks."""
    try:
        outputs = [each.communicate(timeout=seconds) for each in started]
    finally:
        for each in started:
            each.kill()
    return [(each.returncode, *output) for each, output in zip(started, outputs)]


def outputs_of(started):
    """Standard outputs of the ranks, all of which must end well."""
    results = ended(started)
    for rank, (status, out, err) in enumerate(results):
        assert status == 0, f"rank {rank} of {len(started)} ended with {status}:\n{out}\n{err}"
    return [out for _, out, _ in results]


def run(script, size, *arguments, **options):
    return outputs_of(start(script, size, *arguments, **options))
