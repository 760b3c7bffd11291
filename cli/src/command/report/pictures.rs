//! Charts of a run, as SVG within the page.

use std::fmt::Write;

use maud::{Markup, html};

use super::facts::Facts;
use super::timeline::Timeline;
use crate::output::{local_time, quantity};

/// Hosts that have a bar of their own.
const BARS_MAX: usize = 12;

/// Letters of a host's name beside its bar.
const NAME_MAX: usize = 24;

/// States a second over time; nothing of a run without results.
pub(super) fn throughput(timeline: &Timeline) -> Markup {
    const WIDTH: f64 = 720.0;
    const HEIGHT: f64 = 180.0;
    const TOP: f64 = 24.0;
    let speeds = timeline.speeds();
    let most = speeds.iter().copied().fold(0.0, f64::max);
    let (begin, end) = timeline.bounds();
    let mut outline = format!("M0,{HEIGHT}");
    #[expect(clippy::cast_precision_loss, reason = "at most 120")]
    let step = WIDTH / speeds.len() as f64;
    for speed in &speeds {
        let height = HEIGHT - (HEIGHT - TOP) * speed / most.max(1.0);
        write!(outline, "V{height:.1}h{step:.2}").expect("a string takes it");
    }
    write!(outline, "V{HEIGHT}Z").expect("a string takes it");
    html! {
        @if !speeds.is_empty() {
            svg viewBox="0 0 720 208" width="720" height="208" role="img" {
                title { "States per second over time, at most " (quantity(most)) }
                path class="mark" d=(outline) {}
                line class="axis" x1="0" y1="180" x2="720" y2="180" {}
                text x="0" y="14" { "at most " (quantity(most)) " states/s, by the time at which results arrived" }
                text x="0" y="200" { (local_time(begin)) }
                text x="720" y="200" text-anchor="end" { (local_time(end)) }
            }
        }
    }
}

/// Each host's share of the jobs, the busiest first; nothing of a run without results.
pub(super) fn shares(facts: &Facts) -> Markup {
    let hosts = facts.busiest_hosts();
    let (shown, others) = hosts.split_at(hosts.len().min(BARS_MAX));
    let mut bars: Vec<_> = shown.iter().map(|(name, host)| (shortened(name), host.work.jobs)).collect();
    if !others.is_empty() {
        let jobs = others.iter().map(|(_, host)| host.work.jobs).sum();
        bars.push((format!("{} others", others.len()), jobs));
    }
    #[expect(clippy::cast_precision_loss, reason = "for a picture")]
    let share = |jobs: u64| jobs as f64 / facts.work.jobs.max(1) as f64;
    let height = 24 * bars.len();
    html! {
        @if !bars.is_empty() {
            svg viewBox={ "0 0 720 " (height) } width="720" height=(height) role="img" {
                title { "Share of the jobs by host" }
                @for (at, (name, jobs)) in bars.iter().enumerate() {
                    text x="0" y=(24 * at + 16) { (name) }
                    rect class="mark" x="180" y=(24 * at + 4) width=(format!("{:.1}", 460.0 * share(*jobs))) height="16" {}
                    text x=(format!("{:.1}", 460.0 * share(*jobs) + 186.0)) y=(24 * at + 16) { (format!("{:.1} %", 100.0 * share(*jobs))) }
                }
            }
        }
    }
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= NAME_MAX {
        return name.to_owned();
    }
    name.chars().take(NAME_MAX - 1).chain(['…']).collect()
}
