#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GET /_ui/ in a real browser.

Other clients change the server's state, and the test waits until the page shows it; no time is measured. The keyboard can do what
the mouse can. Names that would be markup, commands or reversed text are shown as plain text.
"""
import json
import os
import re
import socket
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import browser  # noqa: E402
from owners_case import OwnersCase, exclusive  # noqa: E402
from server import ROOT  # noqa: E402
import skips  # noqa: E402
from waiting import until  # noqa: E402

HOSTILE = "<img src=x onerror=\"document.title='hit'\">"
MIRRORED = "abc\u202egnp.exe\u2066\u200b\x07"


@unittest.skipIf(browser.PROGRAM is None, "no chromium: tools/install-deps")
class Page(OwnersCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()

    def setUp(self):
        super().setUp()
        self.page = self.browser.open(self.server.url + "/_ui/")
        self.page.until("document.querySelector('#live .good')", "live")

    def tearDown(self):
        """There were no exceptions and no violations of the policy. The browser also reports missing calls and refusals that a test expects."""
        said = [line for line in self.page.said if "Failed to load resource" not in line]
        self.page.close()
        super().tearDown()
        self.assertEqual(said, [])

    def focused(self):
        return self.page.value("document.activeElement.innerText || document.activeElement.id")

    def test_contention_deadlock_and_holder_death(self):
        page = self.page
        page.until("document.querySelector('#blocked .calm')", "calm")
        ann, bob = self.session("ann"), self.session("bob")
        self.lock(ann, exclusive(index="fs", path="/clinton"))
        self.wait(bob, exclusive(index="fs", id="9"), exclusive(index="fs", path="/clinton/x"))
        page.until("document.querySelector('#blocked [data-blocker] ul.chain li')", "a chain")
        self.assertRegex(page.text("#blocked [data-blocker]"), r"(?s)ann session \d+.*holds exclusive fs:/clinton.*blocks 1.*bob session \d+ waits")
        carl = self.session("carl")
        self.wait(carl, exclusive(index="fs", path="/clinton/x/y"))
        page.until("document.querySelector('#tab-blocked .chip').innerText === '2'", "two wait")
        # a deadlock
        self.lock(self.session("dan"), exclusive(index="bank", id="1"))
        dan, eve = self.session("dan-two"), self.session("eve")  # the younger one is the deadlock victim
        self.lock(dan, exclusive(index="bank", id="2"))
        self.lock(eve, exclusive(index="bank", id="3"))
        waits = self.wait(dan, exclusive(index="bank", id="3"))
        until(lambda: self.server.must("GET", "/_events?once=true")["bar"]["waiters"] == 3, "it waits")
        status, _ = self.server.ask("POST", "/_lock", {"session": eve, "wait": "5m", "locks": [exclusive(index="bank", id="2")]})
        self.assertEqual(status, 409)
        page.press("4")
        page.until("document.querySelector('.event[data-kind=deadlock] svg.ring .victim')", "the cycle")
        self.assertEqual(page.value("document.querySelectorAll('.ring g').length"), 2)
        self.assertIn("eve", page.value("document.querySelector('.ring .victim').textContent"))
        # a holder dies: its connection breaks
        attached = socket.create_connection(("127.0.0.1", self.server.port))
        attached.sendall(b"GET /_session/%s/_attach HTTP/1.1\r\nHost: localhost\r\n\r\n" % ann.encode())
        attached.recv(1000)
        page.press("3")
        page.until("[...document.querySelectorAll('#sessions tr')].some(row => /ann.*attached/s.test(row.innerText))", "attached")
        attached.close()
        page.until("![...document.querySelectorAll('#sessions tr')].some(row => /^ann/.test(row.innerText))", "the dead one is gone")
        page.press("4")
        page.until("[...document.querySelectorAll('.event[data-kind=expiry]')].some(event => /ann/.test(event.innerText))", "the expiry")
        self.server.must("DELETE", "/_session/%s?force=true" % eve)
        waits.join()
        page.press("1")
        page.until("document.querySelector('#blocked [data-blocker]') && /bob/.test(document.querySelector('#blocked .root').innerText)", "bob blocks carl now")

    def test_keyboard_only(self):
        page, holder = self.page, self.session("holder")
        self.server.must("POST", "/_transaction", {"session": holder, "mode": "update"})
        txn = self.server.must("POST", "/_transaction", {"session": holder, "mode": "update"})["transaction"]
        for i in range(3):
            self.server.must("PUT", "/accounts/_doc/%d" % i, {"n": i}, headers={"Tidelock-Transaction": txn})
        self.lock(holder, exclusive(index="fs"))
        waiter = self.wait(self.session("waiter"), exclusive(index="fs", id="1"))
        page.until("document.querySelector('[data-blocker] button')", "a button")
        for _ in range(20):
            page.press("Tab")
            if "End session" in self.focused():
                break
        self.assertIn("End session", self.focused())
        page.press("Enter")
        page.until("document.getElementById('ask').open", "it asks")
        asked = page.text("#ask")
        self.assertIn("is rolled back: 3 changes", asked)
        self.assertIn("releases 1 lock: fs", asked)
        self.assertEqual(self.focused(), "word")
        page.type("hold")
        page.press("Enter")
        self.assertTrue(page.value("document.getElementById('ask').open"))
        page.press("Escape")
        page.until("!document.getElementById('ask').open", "it goes")
        self.assertIn("End session", self.focused())
        page.press("Enter")
        page.until("document.getElementById('ask').open", "it asks again")
        page.type("holder")
        page.press("Enter")
        waiter.join()
        self.assertEqual(waiter.status, 200)
        page.until("document.querySelector('#blocked .calm') && !document.getElementById('ask').open", "calm")
        # parts, by their keys and by arrows
        page.value("document.activeElement.blur()")
        page.press("1")
        page.press("ArrowRight")
        self.assertEqual(page.value("shown"), "locks")
        page.press("End")
        self.assertEqual(page.value("shown"), "console")
        page.press("Home")
        page.press("/")
        self.assertEqual(self.focused(), "filter")
        page.type("nothing like it")
        page.until("/Nothing like that/.test(document.querySelector('#locks').innerText)", "the filter")

    def test_hostile_names(self):
        page = self.page
        bad, mirrored = self.session(HOSTILE), self.session(MIRRORED)
        self.lock(bad, exclusive(index="fs", path="/" + HOSTILE), exclusive(index="fs", id="</script><script>document.title='hit'</script>"))
        self.wait(mirrored, exclusive(index="fs", path="/" + HOSTILE + "/" + MIRRORED))
        page.until("document.querySelector('[data-blocker] li')", "a chain")
        self.assertIn(HOSTILE, page.text("#blocked"))
        self.assertIn("abc\\u{202E}gnp.exe\\u{2066}\\u{200B}\\x07", page.text("#blocked"))
        for key in "1234":
            page.press(key)
            page.until("document.querySelector('main section:not([hidden])').innerText.length > 20", "the part")
            shown = page.value("document.body.textContent.replace(document.querySelector('script').textContent, '')")
            self.assertFalse(re.search("[\u202e\u2066\u200b\x07]", shown), key)
        page.press("1")
        page.value("document.querySelector('[data-blocker] button').click()")
        page.until("document.getElementById('ask').open", "it asks")
        self.assertIn(HOSTILE, page.text("#ask"))
        page.value("document.getElementById('ask').close()")
        number = self.server.number(mirrored)
        page.value("endSession(%d)" % number)
        page.until("document.getElementById('ask').open", "it asks")
        self.assertEqual(page.text("#ask label b"), str(number))  # what cannot be typed is asked for by its number
        page.value("document.getElementById('ask').close()")
        page.press("5")
        page.value("document.getElementById('request').value = " + json.dumps("PUT /fs/_doc/1 " + json.dumps({"path": "/x", "text": HOSTILE + MIRRORED})) + " + '\\nGET /fs/_doc/1'")
        page.value("send()")
        self.assertIn("\\u{202E}", page.text("#answers"))
        self.assertEqual(page.value("document.querySelectorAll('img, main script, iframe').length"), 0)
        self.assertEqual(page.value("document.title"), "Tidelock")
        refused = page.value("(() => { try { document.body.innerHTML = '<b>x'; return false } catch { return true } })()")
        self.assertTrue(refused, "markup from text")
        del page.said[:]  # of that

    def test_past_timestamps(self):
        page = self.page
        self.server.must("PUT", "/fs/_doc/1", {"path": "/a/one", "text": "first"})
        holder = self.session("holder")
        self.lock(holder, exclusive(index="fs", path="/a"))
        waiter = self.wait(self.session("waiter"), exclusive(index="fs", id="1"))
        page.until("document.querySelector('[data-blocker] li')", "a chain")
        page.until("serverNow() - rowsOf('locks').flatMap(lock => lock.waiters)[0].since > 1500000", "it lasts")
        then = self.server.must("GET", "/_timestamp")["timestamp"]
        self.server.must("DELETE", "/_session/%s" % holder)
        waiter.join()
        self.server.end_owners()
        self.server.must("PUT", "/fs/_doc/1", {"path": "/b/one", "text": "second"})
        page.until("document.querySelector('#blocked .calm')", "calm")
        page.until("state.bar.newest - %d > 3e6" % then, "some seconds")
        # by the slider, with arrow keys
        page.value("document.getElementById('slider').focus()")
        for _ in range(400):
            page.press("ArrowLeft")
            if page.value("state.asOf !== null && state.asOf <= %d" % then):
                break
        page.until("Boolean(state.pastLocks || state.pastError)", "an answer")
        page.value("setInstant(%d)" % then)
        # the locks of an earlier timestamp may be shown until those of this one arrive, so the text is read with the condition
        chain = page.until("state.asOf === %d && state.pastLocks && (e => e && e.innerText)(document.querySelector('[data-blocker]'))" % then, "the chain of then")
        self.assertRegex(chain, r"(?s)holder session.*fs:/a.*waiter session")
        self.assertNotIn("End session", page.text("#blocked"))  # a past state has no actions
        page.value("show('history'); document.getElementById('then-index').value = 'fs'; lookThen()")
        page.until("/a\\//.test(document.getElementById('then').innerText)", "the directory of then")
        page.value("document.getElementById('then-id').value = '1'; lookThen()")
        page.until("/first/.test(document.getElementById('then').innerText)", "the document of then")
        page.value("show('console'); document.getElementById('request').value = 'GET /fs/_doc/1'; send()")
        page.until("/first/.test(document.getElementById('answers').innerText)", "the console reads then")
        self.assertIn("timestamp=%d" % then, page.text("#answers .curl"))
        page.value("document.getElementById('now').click()")
        page.until("state.asOf === null && document.querySelector('#blocked') && document.getElementById('now').hidden", "now")

    def test_console_accepts_examples_of_docs(self):
        with open(os.path.join(ROOT, "docs", "locking.md"), encoding="utf-8") as file:
            blocks = re.findall(r"```console\n(.*?)```", file.read(), re.S)
        block = next(block for block in blocks if "nightly-rename" in block and "S=$(" in block)
        lines = "\n".join(line for line in block.splitlines() if line.startswith("$ "))
        self.assertGreaterEqual(lines.count("curl"), 4)
        self.server.must("DELETE", "/fs")
        page = self.page
        page.value("show('console'); document.getElementById('request').value = %s; send()" % json.dumps(lines))
        statuses = page.value("[...document.querySelectorAll('#answers .chip')].map(chip => chip.innerText.slice(0, 3)).join()")
        self.assertEqual(statuses, "200,201,200,201,409", page.text("#answers"))
        self.assertEqual(page.value("mine.sessions.length"), 1)
        page.value("document.getElementById('pick-session').value = mine.sessions[0].id; document.getElementById('request').value = %s; send()" %
                   json.dumps("PUT /fs/file/1\n{\n  \"path\": \"/clinton/it's\"\n}\nGET /fs/file/1"))
        page.until("document.querySelectorAll('#answers .good').length === 2", "two answers")
        self.assertIn("-d '{\n  \"path\": \"/clinton/it'\\''s\"\n}'", page.text("#answers .curl"))
        self.assertIn("Tidelock-Session: ", page.text("#answers .curl"))
        page.value("document.getElementById('request').value = 'what is this'; send()")
        page.until("/not a request/.test(document.getElementById('answers').innerText)", "a refusal")

    def test_stale_page_and_polling(self):
        page = self.page
        polls = self.browser.open(self.server.url + "/_ui/#poll")
        polls.until("/asked every/.test(document.getElementById('live').innerText)", "polling")
        self.session("polled")
        polls.until("/1/.test(document.querySelector('#tab-sessions').innerText)", "the session")
        polls.close()
        self.server.stop()
        page.until("document.body.classList.contains('stale')", "greyed")
        self.server.port_wanted = self.server.port
        self.server.start()
        page.until("!document.body.classList.contains('stale') && document.querySelector('#live .chip').innerText !== 'connecting'", "it comes back")


if __name__ == "__main__":
    skips.main(verbosity=2)
