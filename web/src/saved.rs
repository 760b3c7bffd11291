//! The page with one run inside, as one file that needs no coordinator.

use nqueens_coordinator::{Sums, wall_time};
use nqueens_model::operator::{Moment, RunStatus, WallTime};
use serde::Serialize;
use serde_json::Value;

use crate::headers::{INDEX, PICTURES, SCRIPT_FILE, STYLE_TEXT};
use crate::picture::{ShownDetail, ShownRun, json};

/// It loads nothing, and runs only what is in it.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'";

/// What the page shows.
pub struct Saved<'a> {
    /// The run.
    pub run: &'a RunStatus,
    /// What its results come to.
    pub sums: &'a Sums,
    /// How its jobs stand, in at most [`MAP_CELLS`](crate::MAP_CELLS) groups.
    pub groups: &'a [[u32; 4]],
    /// How it went over time.
    pub moments: &'a [Moment],
    /// Its report, as `page.js` shows it.
    pub report: Value,
}

#[derive(Serialize)]
struct SavedPicture {
    at_ms: WallTime,
    runs: [ShownRun; 1],
}

#[derive(Serialize)]
struct Data<'a> {
    picture: SavedPicture,
    detail: ShownDetail<'a>,
    report: &'a Value,
}

impl Saved<'_> {
    /// The page.
    pub fn page(&self) -> String {
        let picture = SavedPicture { at_ms: wall_time(), runs: [ShownRun::new(self.sums, self.run.clone())] };
        let detail = ShownDetail::new(self.run.progress.run, self.groups, None, self.moments);
        // Within a script, text ends it by nothing but this.
        let data = json(&Data { picture, detail, report: &self.report }).replace('<', r"\u003c");
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
}

/// A module without its first import: what it takes from there stands before it.
fn without_import(script: &str) -> String {
    script.split_inclusive('\n').filter(|line| !line.starts_with("import ")).collect()
}
