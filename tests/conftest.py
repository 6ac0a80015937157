"""Options, the node and session fixtures, and the rules about skipping."""

import itertools
import os
import shlex
import shutil

import pytest

import helenus
import measured
from toolchains import HERE, Toolchains

CI = os.environ.get("CI") == "true"
# Tests of nodes whose leases run out when the machine is too busy, and of load generators. They get the marker `alone`: `./test` runs them after the others,
# one at a time.
ALONE = ("docs/test_failures.py", "cluster", "differential", "import", "stress", "time_machine", "kafka_log/test_cluster_on_kafka.py")
# Lines of an assertion that the summary repeats.
SUMMARY_LINES = 12

# Names of `long_tests.txt`, which get the marker `long`.
LONG = [line for line in (HERE / "long_tests.txt").read_text().split("\n") if line and not line.startswith("#")]


def is_long(item):
    """Returns true if `long_tests.txt` has the test, its file or its folder."""
    name = f"{item.path.relative_to(HERE)}::{item.name}"
    return any(name == long or name.startswith((f"{long}/", f"{long}::", f"{long}[")) for long in LONG)


def pytest_addoption(parser):
    parser.addoption("--target", metavar="HOST:PORT", default=os.environ.get("HELENUS_TEST_TARGET"),
                     help="run against a server that is up already instead of starting helenus")
    parser.addoption("--only", metavar="TEST", default=None, help="only the test of that name, with its parameters: durability/test_x.py::test_y[z]")
    parser.addoption("--whole", action="store_true", help="every conformance case over the wire, not only the sample")
    parser.addoption("--unjudged", action="store_true", help="ratios of time and memory are printed, not judged: a busy machine breaks them")
    parser.addoption("--rounds", type=int, default=5 if CI else 20,
                     help="kill -9 rounds of the durability test")
    parser.addoption("--examples", type=int, default=100 if CI else 300,
                     help="random rows a type in the property tests")
    parser.addoption("--minutes", type=float, default=1 if CI else 3,
                     help="how long the cluster's nodes are tormented, and histories compared or imported; every fault and one play come in any case")
    parser.addoption("--faults", default="", help="only these of the cluster's, by words in their names, with commas: drain,SIGTERM,rolling")
    parser.addoption("--calm", type=float, default=2 if CI else 5,
                     help="seconds from one fault of the time machine to the next, beside those that nodes and tablets need to be at rest")
    parser.addoption("--rate", type=float, default=200, help="operations a second of the cluster's clients")
    parser.addoption("--seed", type=int, default=None, help="of the faults and of the cluster's clients, and of the histories of the differential test and the import")
    parser.addoption("--histories", type=int, default=200 if CI else 600, help="histories of the differential test that are played at once")
    parser.addoption("--shrink", type=int, default=1 if CI else 4, help="plays in which smaller histories that differ are looked for")
    parser.addoption("--replay", metavar="FILE", default=None, help="the histories of a differential test that differed")
    parser.addoption("--set", metavar="NAME=VALUE", action="append", default=[], help="a setting of the cluster's nodes; may be given several times")
    parser.addoption("--keep", metavar="FOLDER", default=None, help="where the cluster's history, report and logs stay, and the store of the time machine")
    parser.addoption("--pictures", metavar="FOLDER", default=None, help="where the test of the console leaves pictures of it")


def pytest_configure(config):
    measured.is_judged = not config.getoption("--unjudged")


def pytest_collection_modifyitems(config, items):
    for item in items:
        if any(item.path.is_relative_to(HERE / place) for place in ALONE):
            item.add_marker("alone")
        # By default, `./test` runs only a sample of the conformance cases.
        if is_long(item) or config.getoption("--whole") and item.path.is_relative_to(HERE / "conformance"):
            item.add_marker("long")
    if config.getoption("--target"):
        keep(config, items, lambda item: not item.get_closest_marker("process"))
    if only := config.getoption("--only"):
        keep(config, items, lambda item: item.nodeid == only)


def keep(config, items, condition):
    """Leaves out all other tests."""
    config.hook.pytest_deselected(items=[item for item in items if not condition(item)])
    items[:] = filter(condition, items)


def command_for(nodeid):
    """Returns the command that runs one test alone."""
    folders = nodeid.split("/")
    part = folders[1] if folders[0] == "drivers" else folders[0]
    return f"./test {part} --only {shlex.quote(nodeid)}"


def pytest_terminal_summary(terminalreporter):
    """Prints for each failed test the expected and the actual result, and the command that repeats it alone."""
    failed = [report for kind in ("failed", "error") for report in terminalreporter.stats.get(kind, []) if hasattr(report, "when")]
    if not failed:
        return
    terminalreporter.section("failed tests, and how to repeat them")
    for report in failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        lines = crash.message.splitlines() if crash else str(report.longrepr).splitlines()[-SUMMARY_LINES:]
        terminalreporter.write_line(report.nodeid, red=True)
        for line in lines[:SUMMARY_LINES]:
            terminalreporter.write_line(f"    {line}")
        terminalreporter.write_line(f"  {command_for(report.nodeid)}")


def pytest_sessionfinish(session, exitstatus):
    if hasattr(session.config, "workerinput"):
        # The process that has started this worker counts.
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    stats = reporter.stats if reporter else {}
    skipped = stats.get("skipped", [])
    if os.environ.get("HELENUS_TEST_COUNTS"):
        count = lambda *kinds: sum(len(stats.get(k, [])) for k in kinds)
        with open(os.environ["HELENUS_TEST_COUNTS"], "a") as f:
            print(count("passed", "subtests passed"), count("failed", "error", "subtests failed"),
                  count("skipped", "subtests skipped"), file=f)
    if CI and skipped and exitstatus == 0:
        reporter.write_line("CI skips none: see the skipped tests above", red=True)
        session.exitstatus = 1


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.when == "call" and report.failed:
        for name, value in getattr(item, "funcargs", {}).items():
            if isinstance(value, helenus.Node):
                report.sections.append((f"log of {name}", value.log(80)))


def _address(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


@pytest.fixture(scope="session")
def target(request):
    """Yields the server that driver tests share: helenus, or the one of --target."""
    address = request.config.getoption("--target")
    server = helenus.Target(*_address(address)) if address else helenus.Node().start()
    yield server
    server.close()
    if server.owned:
        shutil.rmtree(server.folder, ignore_errors=True)


@pytest.fixture
def node(tmp_path):
    """Yields a helenus process for one test (mark such tests `process`)."""
    server = helenus.Node(tmp_path).start()
    yield server
    server.close()


@pytest.fixture(scope="session")
def session(target):
    """Returns a protocol v5 session without a keyspace on the shared server."""
    return target.connect()


_numbers = itertools.count()


@pytest.fixture
def keyspace(session):
    """Yields a new keyspace, which is dropped after the test."""
    name = f"t{os.getpid()}_{next(_numbers)}"
    session.execute(f"CREATE KEYSPACE {name} WITH replication = "
                    "{'class': 'SimpleStrategy', 'replication_factor': 1}")
    yield name
    session.execute(f"DROP KEYSPACE {name}")


@pytest.fixture
def ks(target, keyspace):
    """Yields a protocol v5 session in a new keyspace."""
    s = target.connect(keyspace)
    yield s
    s.cluster.shutdown()


@pytest.fixture(scope="session")
def toolchains():
    """Builds the programs of the other languages, or skips by name."""
    return Toolchains()
