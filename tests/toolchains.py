"""Builds the driver programs of other languages, once per content, in a cache outside the sources."""

import contextlib
import fcntl
import filecmp
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.request

import pytest

import helenus

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("HELENUS_TEST_CACHE", HERE / ".cache"))
BUILD_TIMEOUT_S = 1200
MAVEN_CENTRAL = "https://repo1.maven.org/maven2"
CDC_READER_RELEASE = "1.3.9"


def require(client, *tools):
    """Skips the test by the client's name when one of the tools is missing; in CI that fails."""
    missing = [t for t in tools if shutil.which(t) is None]
    if not missing:
        return
    words = f"{client}: skipped, this machine lacks {', '.join(missing)}"
    if os.environ.get("CI") == "true":
        pytest.fail(words)
    pytest.skip(words)


def run(command, cwd, env=None):
    """Runs a build step and fails with its output."""
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **(env or {})}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=BUILD_TIMEOUT_S)
    if done.returncode != 0:
        pytest.fail(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout[-6000:]}")


@contextlib.contextmanager
def locked(folder):
    """Holds the lock of a folder of the cache, so that only one of several processes builds its content."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_name(f"{folder.name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def built_once(out):
    """Yields true if a folder of the cache must be built, and empties it then. The folder counts as built if the block succeeds."""
    with locked(out):
        is_due = not (out / "done").exists()
        if is_due:
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir(parents=True)
        yield is_due
        (out / "done").touch()


def content_hash(folder, names):
    """Returns a short hash of the named files and folders."""
    digest = hashlib.sha256()
    for name in names:
        path = folder / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def go_program(client, source, name):
    """Returns the command of a Go program, which is built if it has changed."""
    require(client, "go")
    out = CACHE / "go" / content_hash(source, ["go.mod", "go.sum", *[p.name for p in sorted(source.glob("*.go"))]])
    with locked(out):
        if not (out / name).exists():
            out.mkdir(parents=True, exist_ok=True)
            run(["go", "build", "-o", str(out / name), "."], source)
    return [str(out / name)]


def go_install(client, package, version):
    """Returns the path of a program of a public Go module. It is built the first time, which takes minutes."""
    require(client, "go")
    name = package.rpartition("/")[2]
    folder = CACHE / name / version
    with locked(folder):
        if not (folder / name).exists():
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as made:
                run(["go", "install", "-ldflags=-s -w", f"{package}@{version}"], folder, {"GOBIN": made, "CGO_ENABLED": "0"})
                os.rename(pathlib.Path(made) / name, folder / name)
    return str(folder / name)


def minio():
    """Returns the command of an object store that speaks S3. The module has no release tags that Go understands; this is its last commit."""
    return go_install("MinIO", "github.com/minio/minio", "v0.0.0-20260212201848-7aac2a2c5b7c")


def promtool():
    """Returns the command of Prometheus' checker of rules and metrics. The module of Prometheus 3 has version numbers 0.3xx."""
    return go_install("Prometheus", "github.com/prometheus/prometheus/cmd/promtool", "v0.316.0")


def helm():
    return os.environ.get("HELM") or shutil.which("helm") or go_install("Helm", "helm.sh/helm/v3/cmd/helm", "v3.18.4")


class Toolchains:
    """Each method returns the command that runs the program, without host and port."""

    def java(self):
        require("Java driver", "java", "mvn")
        source = HERE / "drivers" / "java"
        out = CACHE / "java" / content_hash(source, ["pom.xml", "src"])
        with built_once(out) as is_due:
            if is_due:
                shutil.copytree(source, out, ignore=shutil.ignore_patterns("target", "*.py"), dirs_exist_ok=True)
                run(["mvn", "-q", "-B", "package"], out)
        return ["java", "-cp", f"{out}/target/classes:{out}/target/lib/*", "helenus.tests.Main"]

    def cdc_reader_in_java(self):
        """Returns the command of the reader of captured changes that uses scylla-cdc-java."""
        require("CDC reader for Java", "java", "mvn")
        source = HERE / "cdc_readers" / "java"
        out = CACHE / "cdc-reader" / content_hash(source, ["pom.xml", "src"])
        with built_once(out) as is_due:
            if is_due:
                shutil.copytree(source, out, dirs_exist_ok=True)
                (out / "lib").mkdir()
                for artifact in ("scylla-cdc-lib", "scylla-cdc-base", "scylla-cdc-driver3"):
                    name = f"{artifact}-{CDC_READER_RELEASE}.jar"
                    urllib.request.urlretrieve(f"{MAVEN_CENTRAL}/com/scylladb/{artifact}/{CDC_READER_RELEASE}/{name}", out / "lib" / name)
                run(["mvn", "-q", "-B", "package"], out)
        return ["java", "-cp", f"{out}/target/classes:{out}/lib/*:{out}/target/lib/*", "helenus.tests.Reader"]

    def go(self):
        return go_program("Go driver", HERE / "drivers" / "go", "drivertest")

    def checker(self):
        return go_program("the checker of clusters", HERE / "cluster" / "checker", "checker")

    def node(self):
        require("Node driver", "node", "npm")
        source = HERE / "drivers" / "node"
        out = CACHE / "node" / content_hash(source, ["package.json", "package-lock.json"])
        with built_once(out) as is_due:
            if is_due:
                for name in ("package.json", "package-lock.json"):
                    shutil.copy(source / name, out)
                run(["npm", "ci", "--no-audit", "--no-fund"], out)
            for file in source.glob("*.js"):
                if not (out / file.name).exists() or not filecmp.cmp(file, out / file.name, shallow=False):
                    shutil.copy(file, out)
        return ["node", str(out / "main.js")]

    def rust(self):
        """Returns the command of the program, which is a member of the workspace. `./test` builds it beside the node."""
        require("Rust driver", "cargo")
        program = helenus.binary().parent / "helenus-driver-test"
        if not program.exists():
            run(["cargo", "build", "-p", "helenus-driver-test"], helenus.ROOT)
        return [str(program)]


def check_program(subtests, command, server, timeout_s=600):
    """Runs a driver program against the server; each line `ok NAME` or `FAIL NAME: why` is a subtest."""
    done = subprocess.run([*command, server.host, str(server.port)], text=True, timeout=timeout_s,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    checks = [l for l in done.stdout.splitlines() if l.startswith(("ok ", "FAIL "))]
    for line in checks:
        with subtests.test(msg=line.split(":")[0]):
            assert line.startswith("ok "), line
    everything = f"{done.stdout[-8000:]}\n{done.stderr[-8000:]}"
    assert checks, everything
    assert done.returncode == 0, everything
    assert done.stdout.rstrip().endswith(f"{len(checks)} checks passed"), everything


# Programs that the tests of a folder need, in the order in which they are built.
PROGRAMS = {
    "drivers/java": ("java",), "drivers/go": ("go",), "drivers/node": ("node",), "cluster_drivers": ("minio", "java", "go", "node"),
    "object_store": ("minio",), "nodetool": ("minio",), "kafka_log": ("minio", "checker"), "cluster": ("minio", "checker"),
    "time_machine": ("minio", "checker"), "differential": ("minio",), "console": ("minio",), "monitoring": ("minio", "promtool"),
    "packages": ("helm",),
}


def main(folders):
    """Builds the programs of these folders, so that no test waits for a build of minutes; a missing toolchain is left to the tests."""
    methods = {name: getattr(Toolchains(), name) for name in ("java", "go", "node", "checker")}
    programs = {"minio": minio, "promtool": promtool, "helm": helm, **methods}
    for name in dict.fromkeys(name for folder in folders for name in PROGRAMS.get(folder, ())):
        with contextlib.suppress(pytest.skip.Exception):
            programs[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
