//! Charts of a run, as SVG within the page. They are small enough to be read on a phone.

use std::fmt::Write;

use maud::{Markup, html};

use super::facts::Facts;
use crate::output::{percent, quantity};

/// Hosts that have a bar of their own.
const BARS_MAX: usize = 12;

/// Letters of a host's name beside its bar.
const NAME_MAX: usize = 20;

const WIDTH: f64 = 480.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 464.0;
const TOP: f64 = 28.0;
const BOTTOM: f64 = 190.0;

/// Steps of an axis, at most.
const STEPS_MAX: f64 = 5.0;

/// An axis that begins at 0.
struct Axis {
    title: String,
    /// What a number on it stands for.
    unit: f64,
    /// In units.
    most: f64,
    step: f64,
}

impl Axis {
    fn new(title: String, unit: f64, most: f64) -> Self {
        let most = if most > 0.0 { most / unit } else { 1.0 };
        let power = 10_f64.powf((most / STEPS_MAX).log10().floor());
        let step =
            [1.0, 2.0, 5.0].map(|digit| digit * power).into_iter().find(|step| most / step <= STEPS_MAX);
        Self { title, unit, most, step: step.unwrap_or(10.0 * power) }
    }

    fn of_time(seconds: f64) -> Self {
        let units = [(86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes"), (1.0, "seconds")];
        let (unit, name) = units.into_iter().find(|(unit, _)| seconds >= 2.0 * unit).unwrap_or(units[3]);
        Self::new(format!("{name} since the first lease"), unit, seconds)
    }

    fn of_speed(most: f64) -> Self {
        let units =
            [(1e12, "trillion "), (1e9, "billion "), (1e6, "million "), (1e3, "thousand "), (1.0, "")];
        let (unit, name) = units.into_iter().find(|(unit, _)| most >= *unit).unwrap_or(units[4]);
        Self::new(format!("{name}states/s"), unit, most)
    }

    /// Where a number stands, from 0 to 1.
    fn place(&self, number: f64) -> f64 {
        number / self.unit / self.most
    }

    /// Each mark's place and number.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most ten marks, twelve digits"
    )]
    fn marks(&self) -> impl Iterator<Item = (f64, String)> {
        let decimals = (-self.step.log10().floor()).clamp(0.0, 12.0) as usize;
        let marks = (self.most / self.step + 1e-9).floor() as u32;
        (0..=marks).map(move |mark| {
            let number = f64::from(mark) * self.step;
            (number / self.most, format!("{number:.decimals$}"))
        })
    }
}

/// Speed and progress over time; nothing of a run without results.
pub(super) fn over_time(facts: &Facts) -> Markup {
    let speeds = facts.timeline.speeds();
    if speeds.is_empty() {
        return Markup::default();
    }
    let span_s = facts.timeline.span_s();
    #[expect(clippy::cast_precision_loss, reason = "at most 60")]
    let time = Axis::of_time(span_s * speeds.len() as f64);
    let most = speeds.iter().copied().fold(0.0, f64::max);
    let speed = Axis::of_speed(most);
    let all: f64 = speeds.iter().sum();
    let done = facts.run.progress.share_done;
    let mut sum = 0.0;
    let shares: Vec<_> = speeds
        .iter()
        .map(|speed| {
            sum += speed / all.max(1.0);
            100.0 * done * sum
        })
        .collect();
    let share = Axis::new("% of the work done".to_owned(), 1.0, 100.0);
    let at_most = format!("Speed over time, at most {} states per second", quantity(most));
    let progress = format!("Progress over time, up to {} of the work", percent(done));
    html! {
        div class="charts" {
            (chart(&at_most, &speed, &time, &speeds, span_s))
            (chart(&progress, &share, &time, &shares, span_s))
        }
    }
}

/// Numbers as columns, one for each span of time.
fn chart(title: &str, up: &Axis, time: &Axis, numbers: &[f64], span_s: f64) -> Markup {
    let (width, height) = (RIGHT - LEFT, BOTTOM - TOP);
    let mut outline = format!("M{LEFT},{BOTTOM}");
    let step = width * time.place(span_s);
    for number in numbers {
        write!(outline, "V{:.1}h{step:.3}", BOTTOM - height * up.place(*number)).expect("a string takes it");
    }
    write!(outline, "V{BOTTOM}Z").expect("a string takes it");
    html! {
        svg viewBox="0 0 480 236" role="img" {
            title { (title) }
            @for (place, number) in up.marks() {
                line class="grid" x1=(LEFT) x2=(RIGHT) y1=(fixed(BOTTOM - height * place)) y2=(fixed(BOTTOM - height * place)) {}
                text x=(LEFT - 6.0) y=(fixed(BOTTOM - height * place + 4.0)) text-anchor="end" { (number) }
            }
            path class="mark" d=(outline) {}
            line class="axis" x1=(LEFT) x2=(RIGHT) y1=(BOTTOM) y2=(BOTTOM) {}
            @for (place, number) in time.marks() {
                line class="axis" x1=(fixed(LEFT + width * place)) x2=(fixed(LEFT + width * place)) y1=(BOTTOM) y2=(BOTTOM + 4.0) {}
                text x=(fixed(LEFT + width * place)) y=(BOTTOM + 18.0) text-anchor="middle" { (number) }
            }
            text x="0" y="14" { (up.title) }
            text x=(RIGHT) y="228" text-anchor="end" { (time.title) }
        }
    }
}

/// Each host's share of the visited states, the busiest first; nothing of a run without results.
pub(super) fn shares(facts: &Facts) -> Markup {
    const BARS_LEFT: f64 = 150.0;
    const BARS_WIDTH: f64 = 260.0;
    let hosts = facts.busiest_hosts();
    let (shown, others) = hosts.split_at(hosts.len().min(BARS_MAX));
    let mut bars: Vec<_> = shown.iter().map(|(name, host)| (shortened(name), host.work.states)).collect();
    if !others.is_empty() {
        let states = others.iter().map(|(_, host)| host.work.states).sum();
        bars.push((format!("{} others", others.len()), states));
    }
    #[expect(clippy::cast_precision_loss, reason = "for a picture")]
    let share = |states: u128| states as f64 / facts.work.states.max(1) as f64;
    let bottom = 24 * bars.len() + 4;
    let axis = Axis::new("% of the visited states".to_owned(), 1.0, 100.0);
    html! {
        @if !bars.is_empty() {
            svg viewBox={ "0 0 " (WIDTH) " " (bottom + 44) } role="img" {
                title { "Share of the visited states by host" }
                @for (place, number) in axis.marks() {
                    line class="grid" x1=(fixed(BARS_LEFT + BARS_WIDTH * place)) x2=(fixed(BARS_LEFT + BARS_WIDTH * place)) y1="0" y2=(bottom) {}
                    text x=(fixed(BARS_LEFT + BARS_WIDTH * place)) y=(bottom + 16) text-anchor="middle" { (number) }
                }
                @for (at, (name, states)) in bars.iter().enumerate() {
                    text x="0" y=(24 * at + 17) { (name) }
                    rect class="mark" x=(BARS_LEFT) y=(24 * at + 5) width=(fixed(BARS_WIDTH * share(*states))) height="16" {}
                    text x=(WIDTH) y=(24 * at + 17) text-anchor="end" { (format!("{:.1} %", 100.0 * share(*states))) }
                }
                text x=(BARS_LEFT + BARS_WIDTH) y=(bottom + 36) text-anchor="end" { (axis.title) }
            }
        }
    }
}

/// Without digits that nobody sees.
fn fixed(number: f64) -> String {
    format!("{number:.1}")
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= NAME_MAX {
        return name.to_owned();
    }
    name.chars().take(NAME_MAX - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_numbers() {
        let marks =
            |axis: Axis| (axis.title.clone(), axis.marks().map(|(_, number)| number).collect::<Vec<_>>());
        let text = |(title, marks): (String, Vec<String>)| format!("{}: {title}", marks.join(" "));
        let axes = [0.34, 12.0, 119.0, 120.0, 7_200.0, 1_000_000.0]
            .map(|seconds| text(marks(Axis::of_time(seconds))));
        assert_eq!(
            axes,
            [
                "0.0 0.1 0.2 0.3: seconds since the first lease",
                "0 5 10: seconds since the first lease",
                "0 50 100: seconds since the first lease",
                "0.0 0.5 1.0 1.5 2.0: minutes since the first lease",
                "0.0 0.5 1.0 1.5 2.0: hours since the first lease",
                "0 5 10: days since the first lease",
            ]
        );
        assert_eq!(text(marks(Axis::of_speed(1.84e9))), "0.0 0.5 1.0 1.5: billion states/s");
        assert_eq!(text(marks(Axis::of_speed(504.0))), "0 200 400: states/s");
        assert_eq!(text(marks(Axis::of_speed(0.0))), "0.0 0.2 0.4 0.6 0.8 1.0: states/s");
    }
}
