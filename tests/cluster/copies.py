"""Faults: a copy of the living store beside it, and a node on it that has the cluster's secret and knows its nodes' addresses."""

import contextlib
import itertools
import shutil
import subprocess

import helenus
from minio import Minio
from nemesis import LONG_S, fault, hold

NUMBERS = itertools.count(1)


def copy(source, target):
    """Copies a folder of MinIO. Files that vanish during the copy are left out."""
    subprocess.run(["cp", "-a", str(source), str(target)], stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def stranger(fleet, minio, url, number):
    """Yields a node on a copy, which is not started yet."""
    node = helenus.Node(fleet.folder / f"stranger{number}", store=url, env=minio.environment(), args=["--name", f"stranger{number}"],
                        host="127.0.0.9")
    try:
        yield node
    finally:
        node.close()


def says(node, *words):
    lines = node.log(1000).splitlines()
    return any(all(word in line for word in words) for line in lines)


@fault("a copy of the store in another bucket")
def copy_in_another_bucket(fleet, chance):
    """Shows that a copy is refused, can be adopted, and is then a store of its own."""
    number, name = next(NUMBERS), fleet.store.split("/")[2]
    copied = f"{name}-copy-{number}"
    copy(fleet.minio.folder / name, fleet.minio.folder / copied)
    url = fleet.store.replace(name, copied, 1)
    with stranger(fleet, fleet.minio, url, number) as node:
        node.start(wait=False)
        assert node.process.wait(60) == 1 and says(node, "this is a copy of store", url, f"helenus adopt --store {url}"), node.log(60)
        subprocess.run([str(helenus.binary()), "adopt", "--store", url], check=True, stdout=subprocess.DEVNULL,
                       env={**helenus.clean_environment(), **fleet.minio.environment()}, timeout=60)
        node.start(wait=False)
        hold(fleet, LONG_S)
    # MinIO may still be at work there.
    shutil.rmtree(fleet.minio.folder / copied, ignore_errors=True)
    return "all"


@fault("a copy of the store that can't be told from it")
def copy_of_the_disk(fleet, chance):
    """Copies the disk of the object store and serves it elsewhere, so that names, times and identities are the same. A node of the original
    store is killed meanwhile.
    """
    number, name = next(NUMBERS), fleet.store.split("/")[2]
    other = Minio(fleet.folder / f"minio-copy-{number}")
    other.folder.mkdir()
    for part in (".minio.sys", name):
        copy(fleet.minio.folder / part, other.folder / part)
    other.start()
    try:
        with stranger(fleet, other, fleet.store, number) as node:
            node.start(wait=False)
            hold(fleet, LONG_S)
            refused = lambda: (says(node, "a node has refused this one", "not in the cluster document") and
                               any(says(one, "a node was refused", f'node="stranger{number}"') for one in fleet.nodes))
            helenus.wait_until(refused, 20, "the stranger is refused by name, in both logs")
            killed = chance.choice(fleet.nodes)
            killed.kill()
            hold(fleet, LONG_S)
            killed.start()
    finally:
        other.close()
    return killed.name
