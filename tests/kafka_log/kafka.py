"""Three brokers of Apache Kafka in KRaft mode, from Maven Central, in a folder of the test's own."""

import pathlib
import shutil
import signal
import subprocess

import helenus
import toolchains

HERE = pathlib.Path(__file__).resolve().parent
BROKERS = 3
CLUSTER_ID = "AAAAAAAAQACAAAAAAAAAAA"
JAVA_OPTIONS = ["-Xms128m", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]


def classpath():
    """The brokers' jars; fetched the first time."""
    toolchains.require("Apache Kafka", "java", "mvn")
    source = HERE / "brokers"
    out = toolchains.CACHE / "kafka" / toolchains.content_hash(source, ["pom.xml"])
    if not (out / "done").exists():
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(source, out)
        toolchains.run(["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"], out)
        (out / "done").touch()
    return f"{out}/lib/*"


def java(main, *args, **options):
    """Runs a tool of Kafka's to its end."""
    command = ["java", *JAVA_OPTIONS, "-cp", classpath(), main, *map(str, args)]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, **options)
    assert done.returncode == 0, f"{main} {args}:\n{done.stdout[-4000:]}"
    return done.stdout


class Broker:
    """One of them; each is a controller as well."""

    def __init__(self, number, folder, port, voters):
        self.number, self.folder, self.port = number, folder, port
        self.process = None
        folder.mkdir(parents=True)
        self.properties = folder / "server.properties"
        controller_port = voters[number].rpartition(":")[2]
        settings = {
            "process.roles": "broker,controller", "node.id": number,
            "controller.quorum.voters": ",".join(f"{n}@{at}" for n, at in voters.items()),
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": folder / "data", "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": 1, "broker.session.timeout.ms": 6000,
            "replica.lag.time.max.ms": 5000, "log.retention.check.interval.ms": 5000,
        }
        self.properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def format(self):
        java("kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER_ID, "--config", self.properties)

    def start(self):
        with open(self.folder / "log", "ab") as log:
            command = ["java", *JAVA_OPTIONS, "-cp", classpath(), "kafka.Kafka", str(self.properties)]
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        if self.process and self.process.poll() is None:
            self.resume()
            self.kill()


class Brokers:
    """All of them."""

    def __init__(self, folder):
        numbers = range(1, BROKERS + 1)
        voters = {number: f"127.0.0.1:{helenus.free_port()}" for number in numbers}
        self.all = [Broker(n, pathlib.Path(folder) / f"broker{n}", helenus.free_port(), voters) for n in numbers]

    @property
    def addresses(self):
        return ",".join(f"127.0.0.1:{broker.port}" for broker in self.all)

    def start(self):
        for broker in self.all:
            broker.format()
            broker.start()
        helenus.wait_until(self.ready, 90, "the brokers are ready", 1)
        return self

    def topics(self, *args):
        return java("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", self.addresses, *args)

    def ready(self):
        for broker in self.all:
            assert broker.process.poll() is None, (broker.folder / "log").read_text()[-4000:]
        try:
            self.topics("--list")
            return True
        except (AssertionError, subprocess.TimeoutExpired):
            return False

    def topic(self, name, partitions=12):
        """Makes a topic for a log; its URL."""
        self.topics("--create", "--topic", name, "--partitions", partitions, "--replication-factor", BROKERS,
                    "--config", "min.insync.replicas=2", "--config", "retention.ms=-1",
                    "--config", "unclean.leader.election.enable=false")
        return f"kafka://{self.addresses}/{name}"

    def close(self):
        for broker in self.all:
            broker.close()
