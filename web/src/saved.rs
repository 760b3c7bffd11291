//! The page with one run inside, as one file that needs no coordinator.

use nqueens_coordinator::{Sums, wall_time};
use nqueens_model::operator::{Moment, RunStatus};
use serde_json::{Value, json};

use crate::headers::{INDEX, PICTURES, SCRIPT_FILE, STYLE_TEXT};
use crate::picture::{ShownRun, detail_of};

/// It loads nothing, and runs only what is in it.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'";

/// The page with a run, what its results come to, how its jobs stand (in at most [`MAP_CELLS`](crate::MAP_CELLS) groups), how
/// it went over time, and its report, as `page.js` shows it.
pub fn saved(run: &RunStatus, sums: &Sums, groups: &[[u32; 4]], moments: &[Moment], report: Value) -> String {
    let picture = json!({ "at_ms": wall_time(), "runs": [ShownRun::new(sums, run.clone())] });
    let detail = detail_of(run.progress.run, groups, None, moments);
    // Within a script, text ends it by nothing but this.
    let data = json!({ "picture": picture, "detail": detail, "report": report }).to_string();
    let data = data.replace('<', r"\u003c");
    let script = [PICTURES.replace("\nexport ", "\n"), without_import(SCRIPT_FILE)].concat();
    let head = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n  <style>\n{STYLE_TEXT}  </style>\n  \
         <script id=\"data\" type=\"application/json\">{data}</script>\n  <script type=\"module\">\n{script}  </script>\n"
    );
    let (before, rest) = INDEX.split_once("  <link rel=\"icon\"").expect("the page has an icon");
    let (_, after) = rest.split_once("</head>").expect("the page has a head");
    let (body, rest) = after.split_once("  <header>").expect("the page has a header");
    let (_, rest) = rest.split_once("</header>\n").expect("the header ends");
    [before, &head, "</head>", body, rest].concat()
}

/// A module without its first import: what it takes from there stands before it.
fn without_import(script: &str) -> String {
    script.split_inclusive('\n').filter(|line| !line.starts_with("import ")).collect()
}
