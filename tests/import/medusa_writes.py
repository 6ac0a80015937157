"""Writes a backup with Medusa's own classes, on local storage. The argument is JSON: see `test_medusa.back_up_by_medusa`."""

import json
import pathlib
import sys

order = json.loads(sys.argv[1])
# A dependency of Medusa has an old module `asyncio`, which must not hide that of Python.
sys.path.append(order["packages"])

import medusa.index  # noqa: E402
from medusa.backup_node import backup_snapshots  # noqa: E402
from medusa.cassandra_utils import Cassandra, SnapshotPath  # noqa: E402
from medusa.config import StorageConfig  # noqa: E402
from medusa.storage import Storage  # noqa: E402


class Snapshot:
    """A snapshot in the data folder of a stopped node."""

    def find_dirs(self):
        root = pathlib.Path(order["data"])
        folders = sorted(root.glob(Cassandra.SNAPSHOT_PATTERN.format(order["snapshot"])))
        return [SnapshotPath(folder, *folder.relative_to(root).parts[:2]) for folder in folders]


def main():
    chosen = {"bucket_name": "bucket", "base_path": order["storage"], "prefix": "live", "fqdn": order["fqdn"], "storage_provider": "local",
              "concurrent_transfers": "1", "multi_part_upload_threshold": 100 << 20}
    with Storage(config=StorageConfig(**{field: chosen.get(field) for field in StorageConfig._fields})) as storage:
        backup = storage.get_node_backup(fqdn=order["fqdn"], name=order["backup"], differential_mode=order["is_differential"])
        backup.schema = order["schema"]
        backup.tokenmap = json.dumps({order["fqdn"]: {"tokens": [1], "is_up": True, "rack": "r1", "dc": "dc1"}})
        if order["is_differential"]:
            backup.differential = "differential"
        medusa.index.add_backup_start_to_index(storage, backup)
        manifest = []
        backup_snapshots(storage, manifest, backup, Snapshot(), False, 1)
        backup.manifest = json.dumps(manifest)
        medusa.index.add_backup_finish_to_index(storage, backup)
        medusa.index.set_latest_backup_in_index(storage, backup)


main()
