"""The platform's environment variables: ranks, device, log level. Read when asked for, so that no call has to come
first; one process is one rank, and more than one is refused where results would be wrong."""

import json
import os


def _number(name, text):
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{name} is invalid, should be int, such as 0, 1, 2.") from None


def _natural(name, text):
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


def rank_size():
    check()
    name = "CM_WORKER_SIZE" if os.getenv("CM_WORKER_SIZE") else "RANK_SIZE"
    text = os.getenv(name)
    return max(1, _natural(name, text)) if text else len(_table_ranks()) or 1


def rank_id():
    value = _natural("RANK_ID", os.getenv("RANK_ID") or "0")
    if value >= rank_size():
        raise ValueError(f"RANK_ID is {value}, should be below RANK_SIZE, which is {rank_size()}")
    return value


def local_rank_size():
    mine = _my_server()
    return len(mine) if mine else rank_size()


def local_rank_id():
    mine = _my_server()
    return mine.index(rank_id()) if mine else rank_id()


def device_id():
    for name in ("ASCEND_DEVICE_ID", "DEVICE_ID"):
        if os.getenv(name):
            return _natural(name, os.getenv(name))
    return 0


def require_one_rank(what):
    """Several ranks would need data of other processes: an answer from one alone would be wrong."""
    if rank_size() > 1:
        raise RuntimeError(
            f"{what}: RANK_SIZE is {rank_size()}, but training over several ranks is not supported yet;"
            " run with RANK_SIZE=1"
        )


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
