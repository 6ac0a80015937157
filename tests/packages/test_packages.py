"""The packages: built by `packaging/build`, installed in a clean Debian root, and the node started from there as the package's user."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

import helenus

pytestmark = pytest.mark.process

PACKAGING = helenus.ROOT / "packaging"
CACHE = pathlib.Path(os.environ.get("HELENUS_TEST_CACHE", helenus.ROOT / "tests" / ".cache"))


def run(*command, **options):
    """Returns the output of a command, which must succeed."""
    ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, **options)
    assert ended.returncode == 0, f"{command}: {ended.stdout}{ended.stderr}"
    return ended.stdout


def tool(name, package=None):
    """Returns a program of Debian's packages. It is installed if it is missing and the test runs as root."""
    if shutil.which(name) is None and os.geteuid() == 0 and shutil.which("apt-get"):
        for command in (["update", "-q"], ["install", "-qy", "--no-install-recommends", package or name]):
            subprocess.run(["apt-get", *command], capture_output=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not there")
    return name


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """Returns the folder with a .deb and an .rpm of the binary under test, without its debug information."""
    if shutil.which("nfpm") is None and "NFPM" not in os.environ and shutil.which("go") is None:
        pytest.skip("go is not there, which nfpm is built with")
    folder = tmp_path_factory.mktemp("packages")
    binary = folder / "helenus"
    run(tool("objcopy", "binutils"), "--strip-debug", helenus.binary(), binary)
    run(PACKAGING / "build", "--binary", binary, "--out", folder / "out", env=helenus.clean_environment())
    return folder / "out"


@pytest.fixture(scope="module")
def deb(packages):
    return next(packages.glob("*.deb"))


def clean_system(folder):
    """Makes a clean Debian system in a folder."""
    if os.geteuid() != 0:
        pytest.skip("a system in a folder takes root")
    release = re.search(r"^VERSION_CODENAME=(\w+)$", pathlib.Path("/etc/os-release").read_text(), re.MULTILINE)
    release = release.group(1) if release else "stable"
    clean = CACHE / f"debian-{release}.tar"
    if not clean.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        made = clean.with_suffix(".making.tar")
        run(tool("mmdebstrap"), "--variant=essential", "--include=passwd,libgcc-s1", "--mode=root", release, made)
        made.rename(clean)
    folder.mkdir()
    run("tar", "-C", folder, "-xf", clean, "--exclude=./dev/*")


@pytest.fixture(scope="module")
def root(tmp_path_factory, deb):
    """Yields a clean Debian system in a folder, in which its own dpkg has installed the package."""
    folder = tmp_path_factory.mktemp("root") / "debian"
    clean_system(folder)
    shutil.copy(deb, folder / "helenus.deb")
    run("chroot", folder, "dpkg", "--install", "/helenus.deb")
    yield folder
    shutil.rmtree(folder)


def check_installed(root):
    """Checks the user, its folders, and that no other user may read the settings."""
    passwd = (root / "etc/passwd").read_text()
    user = re.search(r"^helenus:x:(\d+):(\d+):[^:]*:/var/lib/helenus:/usr/sbin/nologin$", passwd, re.MULTILINE)
    assert user, passwd
    uid, gid = (int(part) for part in user.groups())
    for folder in ("var/lib/helenus", "var/cache/helenus", "var/log/helenus"):
        state = (root / folder).stat()
        assert (state.st_uid, state.st_gid, state.st_mode & 0o777) == (uid, gid, 0o700), folder
    state = (root / "etc/helenus/helenus.toml").stat()
    assert (state.st_uid, state.st_gid, state.st_mode & 0o777) == (0, gid, 0o640)
    assert os.access(root / "usr/bin/helenus", os.X_OK)


def test_package_makes_user_folders_and_private_settings(root):
    check_installed(root)


def test_the_settings_are_those_of_the_binary(root):
    changed = {"store": "/var/lib/helenus", "audit_logging_options_audit_logs_dir": "/var/log/helenus/audit",
               "full_query_logging_options_log_dir": "/var/log/helenus/queries", "cache_dir": "/var/cache/helenus"}
    made = run(helenus.binary(), "generate", "config", *helenus.setting_args(changed))
    shipped = (root / "etc/helenus/helenus.toml").read_text()
    assert shipped == made
    lines = shipped.splitlines()
    set_there = sorted(line for line in lines if line and line[0] != "#")
    assert set_there == sorted(f'{name} = "{value}"' for name, value in changed.items())
    listed = re.findall(r"^  ([a-z][a-z0-9_]+) ", run(helenus.binary(), "serve", "--help"), re.MULTILINE)
    in_file = re.findall(r"^#?([a-z][a-z0-9_]+) = ", shipped, re.MULTILINE)
    assert in_file == [name for name in listed if name in in_file] and len(in_file) == len(listed) > 50


def test_man_pages_and_completions_are_there(root, deb):
    files = run("dpkg", "--contents", deb)
    assert re.search(r"root/root .*\./usr/share/man/man1/helenus-nodetool-status\.1\.gz$", files, re.MULTILINE)
    assert re.search(r"^drwxr-xr-x .*\./usr/share/man/man1/$", files, re.MULTILINE), files
    pages = {page.name for page in (root / "usr/share/man/man1").glob("helenus*")}
    commands = re.findall(r"^  ([a-z][a-z-]+) ", run(helenus.binary(), "--help").partition("Options:")[0], re.MULTILINE)
    assert {f"helenus-{command}.1.gz" for command in commands if command != "help"} <= pages, pages
    run("bash", "-n", root / "usr/share/bash-completion/completions/helenus")
    completed = run("bash", "-c", 'source "$1"; COMP_WORDS=(helenus no); COMP_CWORD=1; _helenus helenus no helenus; echo "${COMPREPLY[@]}"',
                    "bash", root / "usr/share/bash-completion/completions/helenus")
    assert completed.strip() == "nodetool"


def test_the_node_runs_from_the_package_as_its_user(root):
    port, http = helenus.free_port(), helenus.free_port()
    # The command of the unit, with variables that /etc/default/helenus would set.
    command = re.search(r"^ExecStart=(.*)$", (root / "usr/lib/systemd/system/helenus.service").read_text(), re.MULTILINE).group(1)
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HELENUS_LISTEN": f"127.0.0.1:{port}", "HELENUS_HTTP": f"127.0.0.1:{http}"}
    with open(root.parent / "log", "wb") as log:
        process = subprocess.Popen(["chroot", "--userspec=helenus:helenus", root, *command.split()], stdout=log, stderr=log, env=environment)
    node = helenus.Target("127.0.0.1", port)
    try:
        helenus.wait_until(lambda: process.poll() is not None or helenus.answers_options(node.host, port), 60, "it serves")
        assert process.poll() is None, (root.parent / "log").read_text()
        session = node.connect()
        session.execute("CREATE KEYSPACE s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE s.t (k int PRIMARY KEY)")
        session.execute("INSERT INTO s.t (k) VALUES (1)")
        assert session.execute("SELECT k FROM s.t").one().k == 1
        owner = (root / "var/lib/helenus").stat().st_uid
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        assert re.search(rf"^Uid:\t{owner}\t{owner}\t", status, re.MULTILINE), status
        assert all(path.stat().st_uid == owner for path in (root / "var/lib/helenus").rglob("*"))
        assert run("chroot", root, "helenus", "nodetool", "-p", http, "status").count("UN ") == 1
    finally:
        node.close()
        process.terminate()
        assert process.wait(60) == 0, (root.parent / "log").read_text()


def test_removing_the_package_leaves_the_data(root):
    run("chroot", root, "dpkg", "--purge", "helenus")
    assert not (root / "usr/bin/helenus").exists() and not (root / "etc/helenus/helenus.toml").exists()
    assert not (root / "var/cache/helenus").exists()
    assert list((root / "var/lib/helenus").iterdir())


def test_the_rpm_holds_what_the_deb_does(packages, deb):
    package = next(packages.glob("*.rpm"))
    in_rpm = set(run(tool("rpm"), "-qpl", package).splitlines())
    in_deb = {line.split()[5][1:] for line in run("dpkg", "--contents", deb).splitlines() if line[0] == "-"}
    apart = lambda files: {file.replace("zsh/vendor-completions", "zsh/site-functions") for file in files}
    assert apart(in_deb) <= in_rpm, apart(in_deb) - in_rpm
    assert "useradd" in run("rpm", "-qp", "--scripts", package)
    run("rpm", "--checksig", "--nosignature", package)


def test_the_rpm_is_installed_and_removed(packages, tmp_path):
    """By rpm, in a clean system whose own packages it does not know."""
    root = tmp_path / "system"
    clean_system(root)
    package = next(packages.glob("*.rpm"))
    run(tool("rpm"), "--root", root, "--nodeps", "--nosignature", "--install", package)
    check_installed(root)
    assert run("chroot", root, "helenus", "--version").startswith("helenus ")
    (root / "var/lib/helenus/data").write_text("kept")
    run("rpm", "--root", root, "--nodeps", "--erase", "helenus")
    assert not (root / "usr/bin/helenus").exists()
    assert (root / "var/lib/helenus/data").read_text() == "kept"


def test_the_unit_is_valid_and_hardened(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not there")
    # The binary is not where the unit names it; all else is checked.
    unit = tmp_path / "helenus.service"
    unit.write_text((PACKAGING / "helenus.service").read_text().replace("/usr/bin/helenus", "/bin/true"))
    run("systemd-analyze", "verify", "--man=no", unit)
    exposure = re.search(r"Overall exposure level for helenus.service: ([\d.]+)", run("systemd-analyze", "security", "--offline=true", unit))
    assert float(exposure.group(1)) < 2, exposure.group(0)


def test_unit_grants_folders_and_restarts_forever():
    unit = (PACKAGING / "helenus.service").read_text()
    granted = {f"/var/{place}/{name}" for kind, place in (("State", "lib"), ("Cache", "cache"), ("Logs", "log"))
               for name in re.findall(rf"^{kind}Directory=(.*)$", unit, re.MULTILINE)}
    folders = re.findall(r"--set \w+=(/\S+)", (PACKAGING / "build").read_text())
    assert len(folders) == 4 and all(any(f"{folder}/".startswith(f"{place}/") for place in granted) for folder in folders), (folders, granted)
    assert "StartLimitIntervalSec=0\n" in unit.partition("[Service]")[0]
    stop_max = int(re.search(r"STOP_MAX: Duration = Duration::from_secs\((\d+)\)", (helenus.ROOT / "crates/helenus/src/serve/stopping.rs").read_text()).group(1))
    assert stop_max < int(re.search(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE).group(1))


def final_stage(dockerfile):
    """Returns the instructions of an image's last stage, as pairs of a name and its arguments."""
    text = dockerfile.read_text().rpartition("\nFROM ")[2]
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines()[1:] if line and line[0] != "#"]


def test_images_differ_only_in_source_of_binary():
    stages = [final_stage(helenus.ROOT / "deploy" / name) for name in ("Dockerfile", "Dockerfile.release")]
    kept = [[pair for pair in stage if pair[0] not in ("COPY", "ARG")] for stage in stages]
    assert kept[0] == kept[1]


def test_the_image_serves_as_nobody_from_a_read_only_root(tmp_path):
    """The content of the image (distroless has glibc, libgcc and certificates) runs in a folder that is mounted read-only."""
    if os.geteuid() != 0:
        pytest.skip("a read-only root takes root")
    stage = final_stage(helenus.ROOT / "deploy" / "Dockerfile")
    environment = {name: value for key, words in stage if key == "ENV" for name, value in (word.split("=", 1) for word in words.split())}
    user = dict(stage)["USER"]
    assert user == "65534:65534"
    image = tmp_path / "image"
    for folder in ("usr/local/bin", "data", "proc"):
        (image / folder).mkdir(parents=True)
    binary = image / "usr/local/bin/helenus"
    run(tool("objcopy", "binutils"), "--strip-debug", helenus.binary(), binary)
    libraries = set(re.findall(r"(/\S+) \(0x", run("ldd", helenus.binary())))
    assert {pathlib.Path(library).name.split(".so")[0] for library in libraries} <= {"libc", "libm", "libgcc_s", "ld-linux-x86-64", "ld-linux-aarch64"}
    for library in libraries:
        (image / library[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, image / library[1:])
    data = tmp_path / "data"
    data.mkdir()
    os.chown(data, 65534, 65534)
    port, http = helenus.free_port(), helenus.free_port()
    environment |= {"HELENUS_LISTEN": f"127.0.0.1:{port}", "HELENUS_HTTP": f"127.0.0.1:{http}", "PATH": "/usr/local/bin"}
    script = (f"mount --bind {image} {image} && mount -o remount,ro,bind {image} && mount --bind {data} {image}/data && mount -t proc proc {image}/proc"
              f" && exec env -i {' '.join(f'{name}={value}' for name, value in environment.items())} {shutil.which('chroot')} --userspec={user} {image} helenus serve")
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen(["unshare", "--mount", "sh", "-ec", script], stdout=log, stderr=log)
    node = helenus.Target("127.0.0.1", port)
    try:
        helenus.wait_until(lambda: process.poll() is not None or helenus.answers_options(node.host, port), 60, "it serves")
        assert process.poll() is None, (tmp_path / "log").read_text()
        assert node.connect().execute("SELECT key FROM system.local").one().key == "local"
        assert {path.stat().st_uid for path in data.rglob("*")} == {65534}
        assert list((image / "data").iterdir()) == []
    finally:
        node.close()
        process.terminate()
        assert process.wait(60) == 0, (tmp_path / "log").read_text()
