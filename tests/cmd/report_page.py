#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""Checks a page of cddp-report.

report_page.py data PAGE             prints the data in it as JSON; fails if the page
                                     could load anything
report_page.py draw PAGE CHROMIUM ID...
                                     opens it in a browser: each plot ID is there and
                                     not blank, no text became a script, and nothing
                                     was loaded. 77: the browser does not start
"""
import html
import json
import os
import re
import subprocess
import sys
import tempfile

# Run behind the page's own scripts; its result is text in the page.
PROBE = """<script>
window.addEventListener("load", function () {
    var out = {plots: {}, hacked: window.hacked, drawn:
        document.documentElement.getAttribute("data-drawn"),
        loaded: performance.getEntriesByType("resource").length};
    function count() {
        document.querySelectorAll(".plot, .heat, [id^=lives] svg").forEach(function (box) {
            var marks = box.querySelectorAll("rect, th, td").length;
            box.querySelectorAll("canvas").forEach(function (canvas) {
                var data = canvas.getContext("2d").getImageData(0, 0, canvas.width,
                    canvas.height).data;
                for (var i = 0; i < data.length; i += 4) /* coloured: no axis */
                    marks += data[i + 3] > 0 && Math.abs(data[i] - data[i + 2]) > 30;
            });
            var id = box.id || box.parentNode.id;
            out.plots[id] = Math.min(marks, id in out.plots ? out.plots[id] : marks);
        });
    }
    count();
    var log = document.getElementById("log"), smooth = document.getElementById("smooth");
    if (log) {
        log.click();
        smooth.value = 20;
        smooth.dispatchEvent(new Event("change"));
        count();
    }
    out.text = document.body.innerText.length;
    var result = document.createElement("pre");
    result.id = "probe";
    result.textContent = JSON.stringify(out);
    document.body.appendChild(result);
});
</script>"""


def fail(text):
    sys.exit("FAIL: " + text)


def page_data(page):
    head = page[: page.index("<body>")]
    if "default-src 'none'" not in head:
        fail("no policy forbids requests")
    if re.search(r"<(link|img|iframe|object|base)\b|<script[^>]*\bsrc=|@import|url\(", page):
        fail("the page names something to load")
    found = re.search(
        r'<script type="application/json" id="data">(.*?)</script>', page, re.S
    )
    return json.loads(found.group(1))


def browse(chromium, path):
    """The page as the browser has it after its scripts."""
    with tempfile.TemporaryDirectory() as home:
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu",
                   "--disable-dev-shm-usage", "--user-data-dir=" + home,
                   "--virtual-time-budget=20000", "--window-size=1300,3000",
                   "--dump-dom", "file://" + path]
        try:
            return subprocess.run(command, stdout=subprocess.PIPE, timeout=300,
                                  stderr=subprocess.DEVNULL, check=False).stdout.decode()
        except (OSError, subprocess.TimeoutExpired):
            return ""


def draw(page, chromium, ids):
    with tempfile.TemporaryDirectory() as home:
        path = os.path.join(home, "plain.html")
        with open(path, "w") as out:
            out.write("<p id=alive></p><script>alive.textContent = 6 * 7</script>")
        if ">42<" not in browse(chromium, path):
            print("this browser does not run a script:", chromium)
            sys.exit(77)
        path = os.path.join(home, "page.html")
        with open(path, "w") as out:
            out.write(page.replace("</body>", PROBE + "</body>"))
        for _ in range(2):  # a browser may die where memory is scarce
            found = re.search(r'<pre id="probe">(.*?)</pre>', browse(chromium, path), re.S)
            if found:
                break
    if not found:
        fail("the probe did not run")
    result = json.loads(html.unescape(found.group(1)))
    print(result)
    if result.get("hacked") is not None:
        fail("text of a file became a script")
    if result["loaded"] != 0:
        fail("the page has loaded something")
    for name in ids:
        if result["plots"].get(name, 0) < (200 if name.startswith("plot") else 2):
            fail("%s is missing or blank" % name)


def main():
    with open(sys.argv[2], encoding="utf-8") as file:
        page = file.read()
    data = page_data(page)
    if sys.argv[1] == "data":
        json.dump(data, sys.stdout)
    else:
        draw(page, sys.argv[3], sys.argv[4:])


main()
