# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium, as a person's browser that opens the dashboard."""

import json
import shutil

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
except ImportError:
    webdriver = None

MISSING = ("" if webdriver and shutil.which("chromedriver") and shutil.which("chromium") else
           "needs Chromium and Selenium: deploy/install-packages browser")


class Browser:
    """A window; ends with `test`."""

    def __init__(self, test, width=1280, height=1000):
        options = webdriver.ChromeOptions()
        for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                     "--force-color-profile=srgb", f"--user-data-dir={test.folder}/chromium",
                     f"--window-size={width},{height}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")),
                                       options=options)
        test.addCleanup(self.driver.quit)
        self._requested = []

    def open(self, url):
        self.driver.get(url)

    def run(self, script, *arguments):
        """The value of a script."""
        return self.driver.execute_script(script, *arguments)

    def text(self, element_id):
        """The text of an element; "" when it is hidden."""
        return self.run("return document.getElementById(arguments[0]).innerText", element_id)

    def is_shown(self, element_id):
        return not self.run("return document.getElementById(arguments[0]).hidden", element_id)

    def resize(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def color_scheme(self, scheme):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def processor_seconds(self):
        """What the page has used of a processor, which others on a busy machine change little."""
        self.driver.execute_cdp_cmd("Performance.enable", {})
        metrics = self.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        [seconds] = [each["value"] for each in metrics if each["name"] == "ThreadTime"]
        return seconds

    def complaints(self):
        """What the console says since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requested(self):
        """All URLs that the page has asked for."""
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self._requested.append(message["params"]["request"]["url"])
        return self._requested
