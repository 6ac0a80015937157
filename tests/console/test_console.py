"""The web console in a real browser: three nodes on MinIO under load, and one node with authentication."""

import http.client
import json
import os
import pathlib
import re
import shutil
import threading
import urllib.request

import pytest

import helenus
import minio as minio_server
from browser import Browser
from replicating import KEYSPACE, Replicator

pytestmark = pytest.mark.process

NODES = 3
PASSWORD = "troy-has-walls"


@pytest.fixture(scope="module")
def browser():
    browser = Browser()
    yield browser
    browser.close()


class Load:
    """Writes and reads of one client until it is closed."""

    def __init__(self, node):
        session = node.connect()
        session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE shop.carts (id int PRIMARY KEY, items text)")
        self.insert = session.prepare("INSERT INTO shop.carts (id, items) VALUES (?, ?)")
        self.select = session.prepare("SELECT items FROM shop.carts WHERE id = ?")
        self.session, self.ended = session, threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        number = 0
        # The pause is what makes the load a small one.
        while not self.ended.wait(0.005):
            number += 1
            self.session.execute(self.insert, (number % 500, "x" * 200))
            self.session.execute(self.select, (number % 500,))

    def close(self):
        self.ended.set()
        self.thread.join()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    folder = tmp_path_factory.mktemp("console")
    store = minio_server.Minio(folder / "minio").start()
    url = f"s3://{store.bucket('console')}/store"
    nodes = []
    for number in range(1, NODES + 1):
        args = ["--name", f"node{number}", "--rack", f"rack{number}", "--set", "tablet_count=12"]
        nodes.append(helenus.Node(folder / f"node{number}", store=url, env=store.environment(), args=args, host=f"127.0.0.{number}"))
    for node in nodes:
        node.start()
    helenus.wait_until(lambda: all(is_settled(node) for node in nodes), 60, "all nodes and tablets at rest", 0.1)
    load = Load(nodes[0])
    yield nodes
    load.close()
    for node in nodes:
        node.close()
    store.close()
    shutil.rmtree(folder, ignore_errors=True)


def cluster_of(node):
    return json.loads(node.http("/cluster")[1])


def is_settled(node):
    cluster = cluster_of(node)
    return (len(cluster["nodes"]) == NODES and all(node["tablets"] > 0 for node in cluster["nodes"])
            and all(tablet["state"] == "stable" and tablet["owner"] for tablet in cluster["tablets"]))


def ask(node, method, path, body=None, **headers):
    """Sends a request. Returns its status, headers and body. An `_` in the name of a header becomes `-`."""
    connection = http.client.HTTPConnection(node.host, node.http_port, timeout=10)
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, f"/console/api/{path}", None if body is None else json.dumps(body), names)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.headers, json.loads(text)


def requests_counted(node):
    counts = node.metrics().items()
    return sum(value for name, value in counts if name.startswith("helenus_request_duration_seconds_count"))


def history(node):
    return ask(node, "GET", "history?seconds=900")[2]


def test_the_cluster_at_a_glance_is_what_the_node_says(fleet, browser):
    node = fleet[0]
    browser.open(node)
    browser.wait(lambda: browser.figure("nodes") == f"{NODES} of {NODES}", "all nodes")
    cluster = cluster_of(node)
    assert browser.figure("tablets") == str(len(cluster["tablets"]))
    assert len(browser.texts(".tablet")) == len(cluster["tablets"])
    elsewhere = [tablet for tablet in cluster["tablets"] if tablet["owner"] != next(n["host_id"] for n in cluster["nodes"] if n["here"])]
    assert len(browser.texts(".tablet.elsewhere")) == len(elsewhere)
    shown = lambda: browser.figure("connections") == str(int(node.metrics()["helenus_connections"]))
    browser.wait(shown, "the connections of /metrics")
    assert all(re.fullmatch(r"[\d.]+ [KMG]?i?B", browser.figure(name)) for name in ("data", "log", "memtables"))
    assert browser.text("header .title").split().count("Helenus") == 1
    # A node that has just begun has no cost of a month.
    assert browser.figure("dollars") == "–"
    for one in cluster["nodes"]:
        assert one["name"] in browser.text("table") and one["cql_address"] in browser.text("table")


def test_charts_add_up_to_the_metrics(fleet, browser):
    node = fleet[0]
    total = lambda column: sum(value or 0 for value in column) * 5
    prefix = "rate.helenus_request_duration_seconds."
    charted = lambda: sum(total(c) for name, c in history(node)["columns"].items() if name.startswith(prefix))
    helenus.wait_until(lambda: len(history(node)["times"]) > 4 and charted() > 200, 40, "figures of the load", 0.5)
    before, drawn = requests_counted(node), charted()
    # Requests since the last sample are in the metrics, but not yet in the chart.
    assert 0.5 * before < drawn < 1.2 * before, (before, drawn)
    browser.section("charts")
    browser.wait(lambda: len(browser.texts(".chart canvas")) > 10, "charts")
    titles = browser.texts(".chart h2")
    for title in ("Requests", "Latency, 99th percentile", "Log", "Bucket requests", "Cost of bucket requests", "Flushes", "Compaction"):
        assert any(shown.startswith(title) for shown in titles), (title, titles)
    p99 = [v for v in history(node)["columns"]["latency.helenus_request_duration_seconds.execute.p99"] if v]
    assert p99 and all(v > 0 for v in p99), p99


def test_legends_have_values_without_hovering(fleet, browser):
    browser.open(fleet[0], "charts")
    browser.section("charts")
    legend = lambda: browser.texts('.chart[data-chart="Requests"] .u-legend .u-value')
    browser.wait(lambda: len(legend()) > 1 and all(re.search(r"\d", text) for text in legend()), "values in a legend that nobody points at")
    assert "UTC" in browser.text('.chart[data-chart="Requests"] .u-legend') and "times in UTC" in browser.text("main .unit")
    # The log, files and memory are side by side.
    assert {"files", "log", "memory"} <= set(browser.texts('.chart[data-chart="Data by place"] .u-legend .u-label'))
    assert browser.complaints() == []


def test_the_prompt_runs_statements(fleet, browser):
    browser.open(fleet[1], "cql")
    browser.section("cql")
    assert "1 row," in browser.run("SELECT id, items FROM shop.carts WHERE id = 7")
    assert browser.texts("#result th") == ["id", "items"] and browser.texts("#result td") == ["7", "x" * 200]
    assert "in keyspace shop" in (browser.run("USE shop"), browser.text("main"))[1]
    assert "<b>&" in browser.run("INSERT INTO carts (id, items) VALUES (-1, '<b>&') ;") + browser.run("SELECT items FROM carts WHERE id = -1")
    assert "carrots" in browser.run("SELECT * FROM carrots")


def test_sections_show_what_tables_hold(fleet, browser):
    node = fleet[0]
    browser.open(node, "clients")
    browser.wait(lambda: "Python Driver" in browser.text("table"), "the driver among the clients")
    browser.section("settings")
    browser.wait(lambda: "cluster_name" in browser.text("table"), "settings")
    browser.section("tables")
    browser.wait(lambda: "carts" in browser.text("table"), "tables")
    browser.section("schema")
    keyspaces = browser.texts(".browser h2")
    assert keyspaces[0] == "shop" and all(name.startswith("system") for name in keyspaces[1:]), keyspaces
    browser.script("[...document.querySelectorAll('.browser button')].find((b) => b.innerText === 'carts').click()")
    browser.wait(lambda: "CREATE TABLE shop.carts" in browser.text("pre"), "the table's definition")
    assert browser.complaints() == []


def test_a_phone_needs_no_scrolling_sideways(fleet, browser):
    browser.size(390, 844)
    try:
        for section in ("overview", "charts", "tables", "partitions", "slow", "clients", "settings", "cql"):
            browser.open(fleet[0], section)
            browser.section(section)
            width = browser.script("return document.documentElement.scrollWidth")
            assert width <= 390, (section, width)
    finally:
        browser.size(1280, 900)


def test_pages_of_other_sites_can_send_no_command(fleet):
    node = fleet[0]
    token = ask(node, "GET", "session")[2]["token"]
    statement = {"statement": "SELECT key FROM system.local"}
    assert ask(node, "POST", "cql", statement, x_helenus_token=token)[0] == 200
    assert ask(node, "POST", "cql", statement)[0] == 403
    assert ask(node, "POST", "cql", statement, x_helenus_token="0" * 64)[0] == 403
    assert ask(node, "POST", "cql", statement, x_helenus_token=token, origin="http://evil.example")[0] == 403
    for method, path in (("GET", "session"), ("GET", "cluster"), ("POST", "cql")):
        status, _, body = ask(node, method, path, statement, x_helenus_token=token, host=f"evil.example:{node.http_port}")
        assert status == 403 and "token" not in body, path
    headers = ask(node, "GET", "session")[1]
    assert "default-src 'none'" in headers["content-security-policy"] and headers["x-frame-options"] == "DENY"
    assert "access-control-allow-origin" not in headers


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """Yields a node with a hot, a written and a large partition. A request is slow from a millisecond on."""
    settings = ["partition_sampling_interval=2", "slow_request_log_timeout=1ms"]
    node = helenus.Node(tmp_path_factory.mktemp("busy"), args=[word for setting in settings for word in ("--set", setting)])
    node.start()
    session = node.connect()
    session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE shop.carts (customer text, item int, v blob, PRIMARY KEY (customer, item))")
    insert = session.prepare("INSERT INTO shop.carts (customer, item, v) VALUES (?, ?, ?)")
    select = session.prepare("SELECT v FROM shop.carts WHERE customer = ? AND item = ?")
    for item in range(50):
        session.execute(insert, ("<b>large</b>", item, os.urandom(50_000)))
    # Flushed at once, so that it is in files alone.
    urllib.request.urlopen(urllib.request.Request(f"http://{node.host}:{node.http_port}/node/flush", data=b"", method="POST")).read()
    for number in range(1000):
        session.execute(select, ("hot" if number % 2 else f"cold{number % 100}", 0))
        session.execute(insert, ("written" if number % 4 else f"once{number}", number, b"x"))
    yield node
    node.close()


def test_busy_and_large_partitions_are_shown(busy, browser):
    browser.open(busy, "partitions")
    cells = lambda title: browser.texts(f'[data-partitions="{title}"] tbody td')
    browser.wait(lambda: "hot" in cells("Most reads"), "the partition that is read the most")
    assert cells("Most reads")[:2] == ["shop.carts", "hot"]
    assert cells("Most writes")[:2] == ["shop.carts", "written"]
    share = float(cells("Most reads")[3].split()[0])
    assert 40 < share < 60, cells("Most reads")
    assert cells("Largest on disk")[:2] == ["shop.carts", "<b>large</b>"]
    assert re.match(r"2\.3\d MiB", cells("Largest on disk")[2]), cells("Largest on disk")
    told = ask(busy, "GET", "partitions")[2]
    assert told["interval"] == 2
    # One in two, of 1,000 reads.
    assert 850 < told["reads"]["total"] < 1150, told["reads"]["total"]
    assert 350 < told["reads"]["top"][0]["count"] < 650, told["reads"]["top"][0]
    assert browser.complaints() == []


def test_slow_statements_are_shown_with_their_stages(busy, browser):
    def slow():
        list(busy.connect().execute("SELECT customer FROM shop.carts WHERE v = 0x0badcafe ALLOW FILTERING"))
        return [one for one in ask(busy, "GET", "slow_statements")[2] if "FILTERING" in one["statement"]]

    helenus.wait_until(slow, 30, "a slow statement")
    browser.open(busy, "slow")
    browser.wait(lambda: "WHERE v = ? ALLOW FILTERING" in browser.text("table"), "the statement")
    assert "badcafe" not in browser.text("table")
    assert browser.texts("th")[:4] == ["Time (UTC)", "Took", "Where the time went", "Table"]
    assert re.search(r"run [\d.]+ ms", browser.text("table")) and browser.script("return document.querySelectorAll('.stages span').length") > 0
    browser.script("[...document.querySelectorAll('main button')].find((b) => b.innerText === 'Longest first').click()")
    longest = max(one["total_ms"] for one in ask(busy, "GET", "slow_statements")[2])
    shown = lambda: [float(text.split()[0]) * (1000 if text.endswith(" s") else 1) for text in browser.texts("tbody td:nth-child(2)")]
    browser.wait(lambda: shown() and shown() == sorted(shown(), reverse=True) and abs(shown()[0] - longest) <= 0.06 + longest / 100, "the longest first")
    assert browser.complaints() == []


def test_replicated_tables_are_shown_with_their_lag(busy, browser, tmp_path):
    browser.open(busy, "replication")
    browser.wait(lambda: "Nothing is replicated" in browser.text("main"), "a cluster without replication")
    session = busy.connect()
    session.execute("CREATE TABLE shop.orders (id int PRIMARY KEY, v int) WITH cdc = true")
    target = helenus.Node(tmp_path / "target").start()
    try:
        target.connect().execute(KEYSPACE.replace("KEYSPACE k", "KEYSPACE shop"))
        with Replicator(busy, target, tmp_path, "--table", "shop.orders") as replicator:
            for number in range(100):
                session.execute("INSERT INTO shop.orders (id, v) VALUES (%s, 1)", (number,))
            replicator.wait_caught_up(session, "shop.orders")
            cells = lambda: browser.texts("tbody td")
            browser.wait(lambda: cells()[:3] == [replicator.name, "shop.orders", "following"] and re.search(r"[\d.]+ m?s", cells()[5]), "the table and its lag")
            assert re.match(r"(\d+) of \1$", cells()[3]) and re.match(r"20\d\d-", cells()[4]) and cells()[7] == "1", cells()
            session.execute("ALTER TABLE shop.orders DROP v")
            browser.wait(lambda: cells()[2].startswith("stopped: "), "the reason")
        assert browser.complaints() == []
    finally:
        target.close()
        session.execute("DROP TABLE shop.orders")


def test_nodes_of_one_machine_are_distinct(busy, browser):
    """The page of a made-up report: two nodes with one name, and a warning."""
    browser.open(busy)
    browser.wait(lambda: browser.figure("nodes") == "1 of 1", "the overview")
    browser.script("""
        const ask = window.fetch;
        window.fetch = async (url, options) => {
            const answer = await ask(url, options);
            if (!url.endsWith("/cluster")) return answer;
            const report = await answer.json();
            const [here] = report.cluster.nodes;
            here.name = "machine";
            report.cluster.nodes.push({ ...here, here: false, host_id: "other", cql_address: "127.0.0.2:9042" });
            report.node.warnings = ["the certificate for clients has expired"];
            return new Response(JSON.stringify(report));
        };
        window.dispatchEvent(new Event("hashchange"));
    """)
    browser.wait(lambda: "machine 127.0.0.2:9042" in browser.text("table"), "the address of the other node")
    assert f"machine {busy.host}:{busy.port} (this one)" in browser.text("table")
    assert browser.text("#warnings") == "the certificate for clients has expired"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    from cassandra.auth import PlainTextAuthProvider

    observed = ["--set", "partition_sampling_interval=1", "--set", "slow_request_log_timeout=1ms", "--set", "slow_requests_kept=1000"]
    node = helenus.Node(tmp_path_factory.mktemp("guarded"), args=[*AUTHENTICATION, *observed])
    node.start()
    session = node.connect(auth_provider=PlainTextAuthProvider("cassandra", "cassandra"))
    session.execute(f"CREATE ROLE helen WITH PASSWORD = '{PASSWORD}' AND LOGIN = true")
    session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE shop.carts (id int PRIMARY KEY)")
    session.execute("CREATE TABLE shop.prices (id int PRIMARY KEY)")
    session.execute("GRANT SELECT ON shop.carts TO helen")
    yield node
    node.close()


AUTHENTICATION = ["--set", "authenticator=PasswordAuthenticator", "--set", "authorizer=CassandraAuthorizer"]


def session_of(node, role, password):
    """Returns the cookie of a role that has logged in."""
    token = ask(node, "GET", "session")[2]["token"]
    status, headers, _ = ask(node, "POST", "login", {"user": role, "password": password}, x_helenus_token=token)
    assert status == 200
    return {"cookie": headers["set-cookie"].split(";")[0]}


def test_role_sees_only_data_of_readable_tables(guarded):
    from cassandra.auth import PlainTextAuthProvider

    session = guarded.connect(auth_provider=PlainTextAuthProvider("cassandra", "cassandra"))
    tables = lambda told: {one["table"] for one in told}
    helen, everyone = session_of(guarded, "helen", PASSWORD), session_of(guarded, "cassandra", "cassandra")

    def all_were_slow():
        for name in ("carts", "prices"):
            session.execute(f"DELETE FROM shop.{name} WHERE id = 4711")
        return tables(ask(guarded, "GET", "slow_statements", **everyone)[2]) >= {"", "carts", "prices"}

    helenus.wait_until(all_were_slow, 30, "slow statements about all")
    written = ask(guarded, "GET", "partitions", **everyone)[2]["writes"]["top"]
    assert tables(written) == {"carts", "prices"} and {one["partition"] for one in written} == {"4711"}
    assert tables(ask(guarded, "GET", "partitions", **helen)[2]["writes"]["top"]) == {"carts"}
    assert tables(ask(guarded, "GET", "slow_statements", **helen)[2]) == {"carts"}


def log_in(browser, password):
    browser.type("#login [name=user]", "helen")
    browser.type("#login [name=password]", password)
    browser.click("#login button")


def test_a_role_logs_in_and_may_what_it_may(guarded, browser):
    browser.open(guarded)
    browser.wait(lambda: "Log in" in browser.text("#login"), "the login")
    log_in(browser, "wrong")
    browser.wait(lambda: browser.text("#login-error"), "the refusal")
    log_in(browser, PASSWORD)
    browser.wait(lambda: browser.text("#user") == "helen" and browser.figure("nodes") == "1 of 1", "the overview")
    cookie = next(c for c in browser.driver.get_cookies() if c["name"].startswith("helenus-console"))
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict" and cookie["path"] == "/console"
    browser.section("cql")
    assert "No rows" in browser.run("SELECT * FROM shop.carts")
    assert "helen has no SELECT permission" in browser.run("SELECT * FROM shop.prices")
    # The session is worth nothing without its token, and ends with the logout.
    session = {"cookie": f"{cookie['name']}={cookie['value']}"}
    assert ask(guarded, "GET", "cluster", **session)[0] == 200
    assert ask(guarded, "POST", "cql", {"statement": "SELECT * FROM shop.carts"}, **session)[0] == 403
    browser.click("#logout")
    browser.wait(lambda: "Log in" in browser.text("#login"), "the login again")
    assert ask(guarded, "GET", "cluster", **session)[0] == 401
    assert browser.complaints() == []


def test_login_is_required_and_guesses_are_limited(guarded):
    for path in ("cluster", "history", "partitions", "slow_statements"):
        assert ask(guarded, "GET", path)[0] == 401
    token = ask(guarded, "GET", "session")[2]["token"]
    assert ask(guarded, "POST", "cql", {"statement": "SELECT key FROM system.local"}, x_helenus_token=token)[0] == 401
    guess = lambda: ask(guarded, "POST", "login", {"user": "helen", "password": "guess"}, x_helenus_token=token)[0]
    statuses = [guess() for _ in range(6)]
    assert statuses[0] == 401 and statuses[-1] == 429, statuses
    right = ask(guarded, "POST", "login", {"user": "helen", "password": PASSWORD}, x_helenus_token=token)
    assert right[0] == 429


# Pictures: name, fixture of the node, section, colour scheme, width and height.
PICTURES = [
    ("light", "fleet", "overview", "light", 1280, 900),
    ("dark", "fleet", "charts", "dark", 1280, 900),
    ("phone", "fleet", "overview", "light", 390, 844),
    ("partitions", "busy", "partitions", "light", 1280, 620),
    ("slow", "busy", "slow", "dark", 1280, 620),
]


@pytest.mark.parametrize("name,nodes,section,scheme,width,height", PICTURES, ids=[picture[0] for picture in PICTURES])
def test_pictures_for_the_documentation(name, nodes, section, scheme, width, height, browser, request):
    folder = request.config.getoption("--pictures")
    if folder is None:
        return
    found = request.getfixturevalue(nodes)
    browser.scheme(scheme)
    browser.size(width, height)
    browser.open(found[0] if isinstance(found, list) else found, section)
    browser.section(section)
    browser.wait(lambda: re.search(r"\d", browser.text("main")), "figures")
    browser.picture(pathlib.Path(folder).resolve() / f"console-{name}.png")
