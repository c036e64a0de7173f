"""Doing tasks: in this process, on a local Dask cluster, or on the one at an address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from livepro.blocks.suite.dataset import Progress, States
from livepro.blocks.suite.tasks import Task, done, perform
from livepro.errors import LiveproError


def perform_all(tasks: Sequence[Task], jobs: int, scheduler: str, progress: Progress) -> States:
    """Do what has not been done before; every task's state, in order.

    Those that need the run of another one come after all others. One job at a time without a `scheduler`
    is done here; otherwise tasks are Dask's: on `jobs` local processes, or by the workers of the
    scheduler at that address, which must see the same files.
    Raises LiveproError when Dask is not installed or the scheduler cannot be reached.
    """
    states: dict[str, dict[str, Any]] = {}
    waiting = []
    for task in tasks:
        known = done(task)
        if known is None:
            waiting.append(task)
        else:
            states[_key(task)] = known
            progress(known, len(states), len(tasks))
    for wave in ([t for t in waiting if not t.measured], [t for t in waiting if t.measured]):
        if wave and (jobs > 1 or scheduler):
            _by_dask(wave, jobs, scheduler, states, progress, len(tasks))
        else:
            for task in wave:
                states[_key(task)] = perform(task)
                progress(states[_key(task)], len(states), len(tasks))
    return [states[_key(task)] for task in tasks]


def _key(task: Task) -> str:
    return f"{task.isa}/{task.name}"


def _by_dask(
    tasks: Sequence[Task],
    jobs: int,
    scheduler: str,
    states: dict[str, dict[str, Any]],
    progress: Progress,
    total: int,
) -> None:
    try:
        import distributed
    except ImportError as error:
        raise LiveproError(
            "Several jobs take the Python package distributed.",
            "Install it, `pip install 'livepro[blocks]'`, or do one at a time: `--jobs 1`.",
        ) from error
    dask: Any = distributed  # without types of its own
    cluster = None
    try:
        if not scheduler:
            cluster = dask.LocalCluster(
                n_workers=min(jobs, len(tasks)), threads_per_worker=1, processes=True, dashboard_address=None
            )
        with dask.Client(scheduler or cluster, timeout=20) as client:
            futures = {client.submit(perform, task, key=task.digest, pure=False): task for task in tasks}
            for future in dask.as_completed(list(futures)):
                task = futures[future]
                broken = future.exception()
                state = (
                    future.result()
                    if broken is None
                    else {"name": task.name, "isa": task.isa, "digest": task.digest, "failure": str(broken)}
                )
                states[_key(task)] = state
                progress(state, len(states), total)
    except (OSError, ValueError) as error:
        raise LiveproError(
            f"The Dask scheduler {scheduler or 'on this machine'} cannot be reached: {error}.",
            "`dask scheduler` starts one, and says its address (tcp://HOST:PORT).",
        ) from error
    finally:
        if cluster is not None:
            cluster.close()
