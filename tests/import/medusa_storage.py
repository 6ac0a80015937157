"""Lays SSTables out as a storage of Medusa (`cassandra-medusa`): `<fqdn>/<backup>/meta`, and the files of full or differential backups."""

import hashlib
import json
import shutil

ID = "0" * 32


class Storage:
    """A storage in a folder. `prefix` is that of its setting, which the paths in manifests begin with."""

    def __init__(self, folder, prefix="live"):
        self.folder, self.prefix = folder / prefix, prefix

    def back_up(self, name, schema, nodes, is_differential):
        """Writes a backup. `nodes` has the files of each node by keyspace and table."""
        token_map = json.dumps({fqdn: {"tokens": [number], "is_up": True, "rack": "r1", "dc": "dc1"} for number, fqdn in enumerate(nodes)})
        for fqdn, tables in nodes.items():
            meta = self.folder / fqdn / name / "meta"
            meta.mkdir(parents=True)
            (meta / "schema.cql").write_text(schema)
            (meta / "tokenmap.json").write_text(token_map)
            if is_differential:
                (meta / "differential").write_text("differential")
            data = self.folder / fqdn / ("data" if is_differential else f"{name}/data")
            manifest = [{"keyspace": keyspace, "columnfamily": f"{table}-{ID}", "objects": self.copy(files, data / keyspace / f"{table}-{ID}")}
                        for (keyspace, table), files in tables.items()]
            (meta / "manifest.json").write_text(json.dumps(manifest))
            index = self.folder / "index/backup_index" / name
            index.mkdir(parents=True, exist_ok=True)
            for file in meta.iterdir():
                shutil.copyfile(file, index / f"{file.stem}_{fqdn}{file.suffix}")

    def copy(self, files, folder):
        """Copies files. Returns their objects in a manifest."""
        folder.mkdir(parents=True, exist_ok=True)
        objects = []
        for file in sorted(files):
            shutil.copyfile(file, folder / file.name)
            path = f"{self.prefix}/{(folder / file.name).relative_to(self.folder)}"
            objects.append({"path": path, "MD5": hashlib.md5(file.read_bytes()).hexdigest(), "size": file.stat().st_size})
        return objects


def divided(files):
    """Divides the files of SSTables between two nodes. The first SSTable is on both, as replicas are."""
    prefixes = sorted({file.name.rpartition("-")[0] for file in files})
    of = lambda chosen: [file for file in files if file.name.rpartition("-")[0] in chosen]
    return of(prefixes[::2]), of(prefixes[:1] + prefixes[1::2])
