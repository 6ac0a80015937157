"""A headless Chromium, driven over WebDriver."""

import os
import shutil
import subprocess

import helenus
import toolchains

PACKAGES = ("chromium", "chromium-driver")
WAIT_S = 20


def bring():
    """Installs Chromium by apt where that may be done; otherwise skips with what to install, and fails in CI."""
    if not all(shutil.which(tool) for tool in ("chromium", "chromedriver")) and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}}
        subprocess.run(["apt-get", "update", "-q"], **quiet)
        subprocess.run(["apt-get", "install", "-y", "-q", "--no-install-recommends", *PACKAGES], **quiet)
    toolchains.require(f"the console's browser (apt-get install {' '.join(PACKAGES)})", "chromium", "chromedriver")


class Browser:
    """One window."""

    def __init__(self):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        bring()
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "hide-scrollbars", "window-size=1280,900"):
            options.add_argument(f"--{argument}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))

    def open(self, node, section="overview"):
        """Opens a section of a node's console; returns when the page has begun."""
        self.driver.get("about:blank")
        self.driver.get(f"http://{node.host}:{node.http_port}/console/#{section}")

    def section(self, name):
        """Goes to a section; returns when it is shown."""
        self.driver.execute_script("location.hash = arguments[0]", f"#{name}")
        self.wait(lambda: self.script("return document.getElementById('main').dataset.section") == name, f"section {name}")

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def texts(self, selector):
        """Returns the texts of all elements at the same time, so that no redraw can occur in between."""
        return self.script("return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText)", selector)

    def text(self, selector):
        return "\n".join(self.texts(selector))

    def figure(self, name):
        """Returns the value of a figure of the overview."""
        return self.text(f'[data-figure="{name}"] .value')

    def click(self, selector):
        self.script("document.querySelector(arguments[0]).click()", selector)

    def type(self, selector, text):
        from selenium.webdriver.common.by import By

        found = self.driver.find_element(By.CSS_SELECTOR, selector)
        found.clear()
        found.send_keys(text)

    def wait(self, condition, what):
        return helenus.wait_until(condition, WAIT_S, f"{what}; the page says:\n{self.text('body')}", 0.1)

    def run(self, statement):
        """Runs a statement in the section CQL, and returns the text of its result."""
        self.type("#statement", statement)
        self.click("#run")
        self.wait(lambda: self.text("#result") not in ("", "Running…"), "an answer")
        return self.text("#result")

    def size(self, width, height):
        """Sets the size of the page, like that of a phone."""
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700})

    def scheme(self, name):
        """Sets the colour scheme that the system prefers: light or dark."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def picture(self, path):
        assert self.driver.save_screenshot(str(path))

    def complaints(self):
        """Returns the errors in the browser's console: failed scripts, and violations of the content security policy."""
        expected = ("status of 401", "status of 400", "status of 429")
        lines = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
        return [line for line in lines if not any(words in line for words in expected)]

    def close(self):
        self.driver.quit()
