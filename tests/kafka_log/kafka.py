"""Three brokers of Apache Kafka in KRaft mode, from Maven Central, in a folder of the test's own."""

import pathlib
import shutil
import signal
import subprocess

import helenus
import toolchains
from links import Links

HERE = pathlib.Path(__file__).resolve().parent
BROKERS = 3
CLUSTER_ID = "AAAAAAAAQACAAAAAAAAAAA"
JAVA_OPTIONS = ["-Xms128m", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]


def classpath():
    """Returns the class path of the brokers, which are fetched the first time."""
    toolchains.require("Apache Kafka", "java", "mvn")
    source = HERE / "brokers"
    out = toolchains.CACHE / "kafka" / toolchains.content_hash(source, ["pom.xml"])
    with toolchains.built_once(out) as is_due:
        if is_due:
            shutil.copytree(source, out, dirs_exist_ok=True)
            toolchains.run(["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"], out)
    return f"{out}/lib/*"


def java(main, *args, **options):
    """Runs a tool of Kafka's to its end."""
    command = ["java", *JAVA_OPTIONS, "-cp", classpath(), main, *map(str, args)]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, **options)
    assert done.returncode == 0, f"{main} {args}:\n{done.stdout[-4000:]}"
    return done.stdout


class Broker:
    """A broker, which is also a controller. `port` is the advertised one, and `listen` the one of the process."""

    def __init__(self, number, folder, port, voters, listen=None, controller_listen=None, more=()):
        self.number, self.folder, self.port = number, folder, port
        self.process = None
        folder.mkdir(parents=True)
        self.properties = folder / "server.properties"
        controller_listen = controller_listen or voters[number].rpartition(":")[2]
        settings = {
            "process.roles": "broker,controller", "node.id": number,
            "controller.quorum.voters": ",".join(f"{n}@{at}" for n, at in voters.items()),
            "listeners": f"PLAINTEXT://127.0.0.1:{listen or port},CONTROLLER://127.0.0.1:{controller_listen}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://{voters[number]}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": folder / "data", "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": 1, "broker.session.timeout.ms": 6000,
            "replica.lag.time.max.ms": 5000, "log.retention.check.interval.ms": 5000,
            **dict(more),
        }
        self.properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def format(self, *args):
        java("kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER_ID, "--config", self.properties, *args)

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
        numbers, port = range(1, BROKERS + 1), helenus.free_port
        self.links = Links()
        voters = {number: f"127.0.0.1:{port()}" for number in numbers}
        self.all = []
        for number in numbers:
            told, listen, controller_listen = port(), port(), port()
            broker = Broker(number, pathlib.Path(folder) / f"broker{number}", told, voters, listen, controller_listen)
            self.links.add(number, told, listen)
            self.links.add(number, int(voters[number].rpartition(":")[2]), controller_listen)
            self.all.append(broker)

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
                    "--config", "min.insync.replicas=2", "--config", "retention.ms=-1")
        return f"kafka://{self.addresses}/{name}"

    def cut(self, broker):
        """Cuts one broker off from the others, from the controllers and from the nodes."""
        self.links.cut(pid=broker.process.pid, target=broker.number)

    def ends(self, topic):
        """Returns the offset after the last record of each partition."""
        found = java("org.apache.kafka.tools.GetOffsetShell", "--bootstrap-server", self.addresses, "--topic", topic)
        lines = [line.split(":") for line in found.splitlines() if line.startswith(f"{topic}:")]
        return {int(partition): int(end) for _, partition, end in lines}

    def leader_of(self, topic):
        """Returns the broker that leads the topic's partition with the most records."""
        ends = self.ends(topic)
        partition = max(ends, key=ends.get)
        lines = self.topics("--describe", "--topic", topic).splitlines()
        line = next(line for line in lines if f"Partition: {partition}\t" in line)
        number = int(line.split("Leader: ")[1].split()[0])
        return next(broker for broker in self.all if broker.number == number)

    def settings(self, topic):
        """Returns the settings of a topic."""
        lines = self.topics("--describe", "--topic", topic).splitlines()
        described = next(line for line in lines if "Configs: " in line)
        given = described.split("Configs: ")[1].split(",")
        return dict(pair.split("=") for pair in given if "=" in pair), described

    def close(self):
        for broker in self.all:
            broker.close()
        self.links.close()


class SecuredBroker(Broker):
    """A broker alone, whose clients use TLS and log in as `helenus`."""

    PASSWORD = "a secret of brokers"

    def __init__(self, folder, authority):
        port = helenus.free_port()
        self.secured_port = helenus.free_port()
        made = authority.certificate("broker", "IP:127.0.0.1")
        self.authority = made["authority"]
        keys = authority.folder / "broker-both.pem"
        keys.write_text(made["key"].read_text() + made["certificate"].read_text())
        login = "listener.name.secured"
        more = {
            "listeners": f"PLAINTEXT://127.0.0.1:{port},SECURED://127.0.0.1:{self.secured_port},CONTROLLER://127.0.0.1:{helenus.free_port()}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},SECURED://127.0.0.1:{self.secured_port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURED:SASL_SSL",
            "inter.broker.listener.name": "PLAINTEXT",
            f"{login}.ssl.keystore.type": "PEM", f"{login}.ssl.keystore.location": keys,
            f"{login}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            f"{login}.plain.sasl.jaas.config":
                f'org.apache.kafka.common.security.plain.PlainLoginModule required user_helenus="{self.PASSWORD}";',
            f"{login}.scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
        }
        controller = more["listeners"].rpartition("//")[2]
        super().__init__(1, folder, port, {1: controller}, more=more)
        self.format("--add-scram", f"SCRAM-SHA-512=[name=helenus,password={self.PASSWORD}]")

    def ready(self):
        assert self.process.poll() is None, (self.folder / "log").read_text()[-4000:]
        try:
            java("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", f"127.0.0.1:{self.port}", "--list")
            return True
        except (AssertionError, subprocess.TimeoutExpired):
            return False
