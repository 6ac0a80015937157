"""A real S3 server for tests: MinIO, built once by the Go toolchain, run in a folder of the test's own."""

import pathlib
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request

import helenus
import toolchains

USER, SECRET = "helenus", "helenus-secret"


class Minio:
    """One server on a free port."""

    def __init__(self, folder=None):
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="helenus-minio-"))
        self.host, self.port = "127.0.0.1", helenus.free_port()
        self.console_port = helenus.free_port()
        self.process = None

    @property
    def endpoint(self):
        return f"http://{self.host}:{self.port}"

    def start(self):
        """Starts the server; returns when it serves."""
        self.folder.mkdir(parents=True, exist_ok=True)
        log = open(self.folder.parent / f"{self.folder.name}.log", "ab")
        self.process = subprocess.Popen(
            [toolchains.minio(), "server", "--quiet", "--address", f"{self.host}:{self.port}",
             "--console-address", f"{self.host}:{self.console_port}", str(self.folder)],
            stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            env={**helenus.clean_environment(), "MINIO_ROOT_USER": USER, "MINIO_ROOT_PASSWORD": SECRET,
                 "MINIO_BROWSER": "off", "MINIO_UPDATE": "off"},
        )
        log.close()
        helenus.wait_until(self.ready, 60, "MinIO ready")
        return self

    def ready(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"MinIO ended with {self.process.returncode}")
        try:
            with urllib.request.urlopen(f"{self.endpoint}/minio/health/live", timeout=2) as answer:
                return answer.status == 200
        except (OSError, urllib.error.URLError):
            return False

    def bucket(self, name):
        """Makes a bucket, which is a folder here; its name."""
        (self.folder / name).mkdir(exist_ok=True)
        return name

    def environment(self, endpoint=None):
        """Returns the environment with which a client reaches the server."""
        return {
            "AWS_ENDPOINT_URL": endpoint or self.endpoint, "AWS_ACCESS_KEY_ID": USER, "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }

    def pause(self):
        """Pauses the server: it answers no requests, and connections stay open."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
