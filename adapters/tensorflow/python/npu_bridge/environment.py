"""The platform's environment variables: ranks, device, log level. Read when asked for, so that no call has to come
first; the job is joined when something needs the other ranks."""

import json
import os


def _number(name, text):
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{name} is invalid, should be int, such as 0, 1, 2.") from None


def natural(name, text):
    value = _number(name, text)
    if value < 0:
        raise ValueError(f"{name} should be >= 0.")
    return value


def check():
    """Contradictions between the two ways to describe a job."""
    if os.getenv("CM_CHIEF_IP") and os.getenv("RANK_TABLE_FILE"):
        raise ValueError("CM_CHIEF_IP and RANK_TABLE_FILE cannot be configured at the same time.")
    if os.getenv("RANK_SIZE") and os.getenv("CM_WORKER_SIZE"):
        raise ValueError("RANK_SIZE and CM_WORKER_SIZE cannot be configured at the same time.")


def _launched():
    """What `cairn launch` or mpirun says of this process: rank, size, local_rank, local_size."""
    if os.getenv("CAIRN_JOB"):
        try:
            return json.loads(os.environ["CAIRN_JOB"])
        except ValueError as error:
            raise ValueError(f"CAIRN_JOB is not JSON: {error}") from None
    mpi = {key: os.getenv(f"OMPI_COMM_WORLD_{key.upper()}") for key in ("rank", "size", "local_rank", "local_size")}
    other = os.getenv("RANK_TABLE_FILE") or os.getenv("CM_CHIEF_IP")
    return {} if other or not mpi["size"] else {key: int(value or 0) for key, value in mpi.items()}


def rank_size():
    if "size" in _launched():
        return int(_launched()["size"])
    check()
    name = "CM_WORKER_SIZE" if os.getenv("CM_WORKER_SIZE") else "RANK_SIZE"
    text = os.getenv(name)
    return max(1, natural(name, text)) if text else len(_table_ranks()) or 1


def rank_id():
    if "rank" in _launched():
        return int(_launched()["rank"])
    value = natural("RANK_ID", os.getenv("RANK_ID") or "0")
    if value >= rank_size():
        raise ValueError(f"RANK_ID is {value}, should be below RANK_SIZE, which is {rank_size()}")
    return value


def local_rank_size():
    mine = _my_server()
    return int(_launched().get("local_size") or len(mine) or rank_size())


def local_ranks():
    """The ranks on this host."""
    first = rank_id() - local_rank_id()
    return _my_server() or list(range(first, first + local_rank_size()))


def local_rank_id():
    mine = _my_server()
    return int(_launched().get("local_rank", mine.index(rank_id()) if mine else rank_id()))


_joining = {"joined": False, "groups": {}, "timeout": None}  # groups: ranks by name, that the job has to know


def join():
    """Joins the job of several ranks, once; all of them come here before the first exchange."""
    if _joining["joined"] or rank_size() == 1:
        return
    from cairn import job

    job.join()
    _joining["joined"] = True
    if _joining["timeout"]:
        job.set_timeout(_joining["timeout"])
    for name, ranks in _joining["groups"].items():
        job.group_create(name, ranks)


def set_timeout(seconds):
    """How long an exchange waits for another rank, as a script says it; what `cairn launch --timeout` says goes before."""
    if rank_size() == 1 or _launched().get("timeout"):
        return
    _joining["timeout"] = seconds
    if _joining["joined"]:
        from cairn import job

        job.set_timeout(seconds)


def add_group(name, ranks):
    """The job learns of it when it is joined: until then no other rank is needed."""
    _joining["groups"][name] = list(ranks)
    if _joining["joined"]:
        from cairn import job

        job.group_create(name, list(ranks))


def remove_group(name):
    del _joining["groups"][name]
    if _joining["joined"]:
        from cairn import job

        job.group_destroy(name)


def device_id():
    for name in ("ASCEND_DEVICE_ID", "DEVICE_ID"):
        if os.getenv(name):
            return natural(name, os.getenv(name))
    return 0


def _servers():
    """Lists of rank ids, one per server, from the rank table file."""
    path = os.getenv("RANK_TABLE_FILE")
    if not path or not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        try:
            table = json.load(file)
            if "server_list" in table:
                return [[int(device["rank_id"]) for device in server["device"]] for server in table["server_list"]]
            groups = table.get("group_list", [])
            instances = [instance for group in groups for instance in group["instance_list"]]
            return [[int(device["rank_id"]) for device in instance["devices"]] for instance in instances]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"RANK_TABLE_FILE {path} is not a rank table: {error!r}") from None


def _table_ranks():
    return [rank for server in _servers() for rank in server]


def _my_server():
    return next((sorted(server) for server in _servers() if rank_id() in server), [])
