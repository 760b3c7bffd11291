//! The page in a real Chromium, driven by chromedriver by the protocol of W3C's `WebDriver`.

use std::io::BufRead;
use std::process::Command;

use serde_json::{Value, json};

use crate::Place;
use crate::http::{ask, is_here, page_of, skip};
use crate::processes::{Background, Coordinator, OPERATOR_TOKEN, WORKER_TOKEN, eventually};

/// The field of an element in the protocol's answers.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A browser of its own; gone with all its processes when the test is over.
pub(crate) struct Browser {
    address: String,
    session: String,
    _driver: Background,
}

impl Browser {
    /// A new one.
    pub(crate) fn start() -> Self {
        let mut driver = Background::start(Command::new("chromedriver").arg("--port=0"));
        let mut lines = driver.stdout().lines();
        let port = lines.find_map(|line| {
            let line = line.expect("text");
            line.split_once("successfully on port ").map(|(_, port)| port.trim_end_matches('.').to_owned())
        });
        let address = format!("127.0.0.1:{}", port.expect("it says where it listens"));
        // Nothing but our own pages is opened: it needs no sandbox, which root in a container does not get.
        let options =
            json!({ "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
        let logs = json!({ "browser": "ALL" });
        let wanted = json!({ "goog:chromeOptions": options, "goog:loggingPrefs": logs });
        let body = json!({ "capabilities": { "alwaysMatch": wanted } }).to_string();
        let answer = ask(&address, "POST /session", &[], &body);
        assert_eq!(answer.status, 200, "{}", answer.body);
        let answer: Value = serde_json::from_str(&answer.body).expect("JSON");
        let session = answer["value"]["sessionId"].as_str().expect("a session").to_owned();
        Self { address, session, _driver: driver }
    }

    fn call(&self, path: &str, body: &Value) -> Value {
        let request = format!("POST /session/{}/{path}", self.session);
        let answer = ask(&self.address, &request, &[], &body.to_string());
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        let mut answer: Value = serde_json::from_str(&answer.body).expect("JSON");
        answer["value"].take()
    }

    /// Opens an address.
    pub(crate) fn open(&self, url: &str) {
        self.call("url", &json!({ "url": url }));
    }

    /// What a script in the page returns.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.call("execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Waits until an expression is true.
    pub(crate) fn wait(&self, expression: &str) {
        eventually(expression, || (self.run(&format!("return Boolean({expression})")) == true).then_some(()));
    }

    /// The text of what a selector finds first.
    pub(crate) fn text(&self, selector: &str) -> String {
        let text = self.run(&format!("return document.querySelector({selector:?})?.textContent ?? ''"));
        text.as_str().expect("text").to_owned()
    }

    /// Types into what a selector finds.
    fn type_into(&self, selector: &str, text: &str) {
        let found = self.call("element", &json!({ "using": "css selector", "value": selector }));
        let element = found[ELEMENT].as_str().expect("an element");
        self.call(&format!("element/{element}/value"), &json!({ "text": text }));
    }

    /// Presses a key, wherever the focus is.
    pub(crate) fn press(&self, key: char) {
        let strokes = json!([{ "type": "keyDown", "value": key }, { "type": "keyUp", "value": key }]);
        self.call("actions", &json!({ "actions": [{ "type": "key", "id": "keys", "actions": strokes }] }));
    }

    /// A command of Chromium's own.
    fn devtools(&self, command: &str, parameters: &Value) {
        self.call("goog/cdp/execute", &json!({ "cmd": command, "params": parameters }));
    }

    /// What went wrong in the page since this was last asked.
    pub(crate) fn complaints(&self) -> Vec<Value> {
        let log = self.call("se/log", &json!({ "type": "browser" }));
        let mut lines = log.as_array().expect("a list").clone();
        lines.retain(|line| line["level"] == "SEVERE" || line["level"] == "WARNING");
        lines
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        drop(ask(&self.address, &format!("DELETE /session/{}", self.session), &[], ""));
    }
}

/// Keys, by the protocol's names for them.
pub(crate) const RIGHT: char = '\u{e014}';
const LEFT: char = '\u{e012}';
pub(crate) const END: char = '\u{e010}';

#[test]
fn the_page_follows_a_run_to_its_end() {
    if !is_here("chromedriver") {
        return;
    }
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "--sync-seconds 1");
    let page = format!("http://{}", page_of(&coordinator));
    let run = coordinator.submit(&place, "13 --plan border --job-states 20000");
    let browser = Browser::start();
    browser.open(&format!("{page}/"));
    browser.wait("document.getElementById('link').textContent === 'live'");
    browser.wait("document.getElementById('jobs').textContent.startsWith('0 of ')");
    assert!(browser.text("#run-name").contains(&run));
    // What is written into this page would be gone if it were loaded again.
    browser.run(
        "window.seen = []; \
         new MutationObserver(() => window.seen.push(document.getElementById('share').textContent)) \
             .observe(document.getElementById('share'), { childList: true })",
    );
    // A worker's name comes from elsewhere: it is to be shown, not to be obeyed.
    let name = "<img/src=x/onerror=document.title='owned'><script>1</script>";
    let _worker = coordinator.worker_on(&place, name, "spool", &[]);
    browser.wait("document.getElementById('total').textContent === '73,712'");
    assert_eq!(browser.text("#total-more"), "equal to the published count");
    assert_eq!(
        (browser.text("#run-state"), browser.text("#share")),
        ("done".to_owned(), "100.0 %".to_owned())
    );
    assert_eq!(browser.run("return window.seen.at(-1)"), "100.0 %");
    // What is over has no speed, and has taken a time.
    browser.wait("document.getElementById('elapsed-name').textContent === 'Took'");
    let hidden =
        |id: &str| browser.run(&format!("return document.getElementById('{id}').parentElement.hidden"));
    assert_eq!(["speed", "left", "end", "elapsed"].map(hidden), [true, true, true, false].map(Value::from));
    assert_eq!(browser.text("#unique"), "9,233");
    let orbits = browser.run(
        "return ['count2', 'count4', 'count8'].map((id) => Number(document.getElementById(id).textContent.replace(',', ''))) \
             .reduce((sum, count, index) => sum + count * [2, 4, 8][index], 0)",
    );
    assert_eq!((orbits, browser.text("#checks")), (73_712.into(), "passed".to_owned()));
    let links = "return ['report', 'ledger'].map((id) => document.getElementById(id).getAttribute('href'))";
    let wanted = ["report", "ledger"].map(|document| format!("/{document}?run={run}"));
    assert_eq!(browser.run(links), json!(wanted));
    browser.wait("!document.getElementById('throughput-text').textContent.includes('now')");
    browser.wait("document.querySelector('#events').textContent.includes('done, TOTAL 73,712')");
    browser.wait("document.querySelector('#workers th')");
    assert_eq!(browser.text("#workers th"), name);
    let alien = browser.run("return document.querySelectorAll('main img, main script').length");
    assert_eq!((alien, browser.run("return document.title.includes('owned')")), (0.into(), false.into()));

    // Pictures have words beside them, and tables their headings.
    let unnamed = browser.run(
        "return [...document.querySelectorAll('[role=img]')].filter((picture) => \
             !picture.getAttribute('aria-labelledby').split(' ').every((id) => document.getElementById(id)?.textContent)).length",
    );
    let untitled = browser.run(
        "return [...document.querySelectorAll('table')].filter((table) => \
                                    !table.caption || !table.querySelector('th[scope=col]')).length",
    );
    assert_eq!((unnamed, untitled), (0.into(), 0.into()));
    let drawn = browser.run("return document.querySelector('#map').height");
    assert!(drawn.as_u64() > Some(0), "the map has cells");

    fits_everywhere(&browser);
    assert_eq!(browser.complaints(), Vec::<Value>::new());
    steps_through_solutions(&browser, &page);
    // A browser waits for a coordinator that goes away.
    browser.open(&format!("{page}/"));
    browser.wait("document.getElementById('link').textContent === 'live'");
    assert_eq!(coordinator.stop().code, 0);
    browser.wait("document.getElementById('link').textContent === 'waiting for the coordinator'");
    // And what is old looks so.
    browser.wait("!document.getElementById('stale').hidden && document.title.startsWith('Out of date')");
    assert_eq!(browser.run("return getComputedStyle(document.getElementById('run')).filter"), "grayscale(1)");
}

/// Finds what makes a page hard to use for those who do not see it, or have no mouse.
pub(crate) struct Axe(String);

impl Axe {
    /// The library that the variable `AXE` names the file of; without it the test is skipped.
    pub(crate) fn read() -> Option<Self> {
        let Some(file) = std::env::var_os("AXE") else {
            skip("axe, whose file AXE does not name");
            return None;
        };
        Some(Self(std::fs::read_to_string(file).expect("the file that AXE names")))
    }

    /// That there is nothing to find, in light and in dark, on a desktop and on a phone.
    pub(crate) fn finds_nothing(&self, browser: &Browser, page: &str) {
        for (scheme, width) in [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)] {
            let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
            browser.devtools("Emulation.setEmulatedMedia", &json!({ "features": [feature] }));
            let screen =
                json!({ "width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600 });
            browser.devtools("Emulation.setDeviceMetricsOverride", &screen);
            browser.run(&self.0);
            let find = "const done = arguments[0]; axe.run().then(({ violations, passes }) => done({ passes: passes.length, \
                        found: violations.map((it) => [it.id, it.nodes.map((node) => node.html + node.failureSummary)]) }))";
            let outcome = browser.call("execute/async", &json!({ "script": find, "args": [] }));
            assert_eq!(outcome["found"], json!([]), "{page}, {scheme}, {width} pixels wide");
            assert!(outcome["passes"].as_u64() > Some(10), "{page}: {outcome}");
        }
        browser.devtools("Emulation.clearDeviceMetricsOverride", &json!({}));
    }
}

#[test]
fn axe_finds_nothing_on_any_page() {
    if !is_here("chromedriver") {
        return;
    }
    let Some(axe) = Axe::read() else { return };
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "--sync-seconds 1");
    let (url, page) = (coordinator.url(), format!("http://{}", page_of(&coordinator)));
    let browser = Browser::start();
    browser.open(&format!("{page}/"));
    browser.wait("document.getElementById('link').textContent === 'live'");
    axe.finds_nothing(&browser, "no runs");
    browser.open(&format!("{page}/solutions"));
    browser.wait("document.querySelector('#board .queen')");
    axe.finds_nothing(&browser, "solutions");

    let done = coordinator.submit(&place, "9");
    let _worker = coordinator.worker(&place, "west", &[]);
    place.stdout(&format!("watch {done} --interval 0.2 --coordinator {url}"));
    let open = coordinator.submit(&place, "20 --plan border");
    for (run, state) in [(&open, "active"), (&done, "done")] {
        browser.open(&format!("{page}/?run={run}"));
        browser.wait(&format!("document.getElementById('run-state').textContent === '{state}'"));
        axe.finds_nothing(&browser, state);
        let report = place.path("report.html");
        place.stdout(&format!("report {run} --db queens.db --html --output report.html --force"));
        browser.open(&format!("file://{}", report.display()));
        browser.wait("document.getElementById('report-story').innerText.includes('How to verify it')");
        axe.finds_nothing(&browser, &format!("report of a run that is {state}"));
        assert_eq!(browser.run("return document.documentElement.scrollWidth <= innerWidth"), true);
    }
    let tokens = [("NQUEENS_WORKER_TOKEN", WORKER_TOKEN), ("NQUEENS_OPERATOR_TOKEN", OPERATOR_TOKEN)];
    let place = Place::new();
    let closed = Coordinator::start(&place, &tokens, "");
    browser.open(&format!("http://{}/login", page_of(&closed)));
    axe.finds_nothing(&browser, "the question for the token");
    browser.type_into("input[name=token]", &format!("{WORKER_TOKEN}\n"));
    browser.wait("document.querySelector('[role=alert]')");
    axe.finds_nothing(&browser, "the question after a wrong token");
    browser.type_into("input[name=token]", &format!("{OPERATOR_TOKEN}\n"));
    browser.wait("document.getElementById('link')?.textContent === 'live'");
    assert_eq!(browser.run("return document.cookie"), "", "no script sees the cookie");
    assert_eq!(browser.text("#empty"), "No run yet. nqueens submit 16 starts one.");
}

#[test]
fn a_run_that_is_counted_tells_how_far_it_is() {
    if !is_here("chromedriver") {
        return;
    }
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "--sync-seconds 1");
    let (url, page) = (coordinator.url(), format!("http://{}", page_of(&coordinator)));
    // The oldest run is open, too, but nobody counts it.
    let paused = coordinator.submit(&place, "12");
    place.stdout(&format!("pause {paused} --coordinator {url}"));
    let run = coordinator.submit(&place, "18 --plan border --job-states 1000000");
    let _worker = coordinator.worker(&place, "west", &[]);
    eventually("somebody counts it", || {
        let status = place.json(&format!("status {run} --json --coordinator {url}"));
        (status["runs"][0]["leased"].as_u64() > Some(0)).then_some(())
    });
    let browser = Browser::start();
    browser.open(&format!("{page}/"));
    browser.wait(
        "['elapsed', 'left', 'end', 'speed', 'jobs', 'cost'].every((id) => { \
             const fact = document.getElementById(id); return !fact.parentElement.hidden && /\\d/.test(fact.textContent); })",
    );
    assert_eq!(browser.text("#run-name"), format!("run {run}"));
    assert_eq!(
        (browser.text("#elapsed-name"), browser.text("#run-state")),
        ("Elapsed".into(), "active".into())
    );
    for (id, form) in [
        ("elapsed-more", "^since .*\\d:\\d\\d"),
        ("left-more", " to "),
        ("end", "\\d:\\d\\d"),
        ("end-more", "\\d:\\d\\d.* to .*\\d:\\d\\d"),
        ("speed-more", "^on \\d[.]\\d threads$"),
        ("jobs-more", "^\\d+ leased$"),
        ("key-leased", "^leased \\d+: [1-9]\\d* being counted, \\d+ queued$"),
    ] {
        browser.wait(&format!("/{form}/.test(document.getElementById('{id}').textContent)"));
    }
    // Axes have units, numbers, and the time of day.
    for (chart, unit) in [("throughput", "states/s"), ("estimate", "solutions")] {
        let texts =
            format!("[...document.querySelectorAll('#{chart} text.axis')].map((text) => text.textContent)");
        for form in [format!("^{unit}$"), "^[1-9]".to_owned(), "\\d:\\d\\d".to_owned()] {
            browser.wait(&format!("{texts}.some((text) => new RegExp({form:?}).test(text))"));
        }
    }
    assert_eq!(browser.complaints(), Vec::<Value>::new());
}

/// Light or dark as the reader wants it, and no wider than a small phone.
pub(crate) fn fits_everywhere(browser: &Browser) {
    let scheme = |scheme: &str| {
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        browser.devtools("Emulation.setEmulatedMedia", &json!({ "features": [feature] }));
        browser.run("return getComputedStyle(document.body).backgroundColor")
    };
    assert_eq!((scheme("dark"), scheme("light")), ("rgb(19, 23, 26)".into(), "rgb(247, 247, 245)".into()));
    let phone = json!({ "width": 320, "height": 640, "deviceScaleFactor": 2, "mobile": true });
    browser.devtools("Emulation.setDeviceMetricsOverride", &phone);
    assert_eq!(browser.run("return [innerWidth, document.documentElement.scrollWidth]"), json!([320, 320]));
    // Nothing of a table is out of sight: its rows are cards there.
    let clipped = "return [...document.querySelectorAll('#live td, #live tbody th, caption')].filter((cell) => { \
                       const { left, right } = cell.getBoundingClientRect(); return left < 0 || right > innerWidth; }).length";
    assert_eq!(browser.run(clipped), 0);
    browser.devtools("Emulation.clearDeviceMetricsOverride", &json!({}));
}

fn steps_through_solutions(browser: &Browser, page: &str) {
    browser.open(&format!("{page}/solutions"));
    let shows = |what: &str| {
        browser.wait(&format!("document.getElementById('what').textContent.startsWith({what:?})"));
    };
    shows("Solution 1 of 12 for N = 8; no symmetry");
    assert_eq!(
        browser.text("#queens"),
        "Queens from the top row down in columns 0, 4, 7, 5, 2, 6, 1, 3, numbered from 0."
    );
    for (key, number) in [(RIGHT, 2), (RIGHT, 3), (LEFT, 2), (LEFT, 1), (LEFT, 1), (END, 12), (RIGHT, 12)] {
        browser.press(key);
        shows(&format!("Solution {number} of 12"));
    }
    assert_eq!(browser.run("return document.querySelectorAll('#board .queen').length"), 8);
    browser
        .run("const n = document.getElementById('n'); n.value = '4'; n.dispatchEvent(new Event('change'))");
    shows("Solution 1 of 1 for N = 4; equal to its quarter turn");
    assert_eq!(browser.run("return document.querySelectorAll('#images li').length"), 2);
    fits_everywhere(browser);
    assert_eq!(browser.complaints(), Vec::<Value>::new());
}
