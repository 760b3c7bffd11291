//! Simulates clusters, each from its seed, until one fails. Ctrl-C stops it: start it again from the last line printed.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::process::ExitCode;
use std::thread::available_parallelism;
use std::time::Instant;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use nqueens_simulation::search::{outcome, search};
use nqueens_simulation::{Campaign, Figures, Scenario};

/// Seeds between two lines of figures.
const LINE_EVERY: u64 = 1_000;

/// Simulates clusters with everything that can go wrong in them: docs/simulation.md.
#[derive(Debug, Parser)]
struct Options {
    /// Seeds to simulate, FIRST..END
    #[arg(long, value_parser = seeds, default_value = "0..10000")]
    seeds: Range<u64>,
    /// Simulates one scenario again: a seed, or the line that a failure printed
    #[arg(long, conflicts_with = "seeds")]
    replay: Option<Scenario>,
    /// Counts N = 28 as docs/q28.md plans it
    #[arg(long, conflicts_with_all = ["seeds", "replay"])]
    campaign: bool,
    /// Simulations at a time; all cores unless told otherwise
    #[arg(long)]
    threads: Option<NonZeroUsize>,
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let ends = text.split_once("..").and_then(|(first, end)| Some((first.parse().ok()?, end.parse().ok()?)));
    ends.map(|(first, end)| first..end).ok_or_else(|| format!("'{text}' is no range FIRST..END"))
}

fn main() -> ExitCode {
    let Options { seeds, replay, campaign, threads } = Options::parse();
    if campaign {
        println!("{}", Campaign { jobs: 230_868, nodes: 16, threads: 64 }.run());
        return ExitCode::SUCCESS;
    }
    if let Some(scenario) = replay {
        // Its panic says what does not hold, and where.
        return match outcome(&scenario) {
            Ok(figures) => {
                println!("holds: {figures}");
                ExitCode::SUCCESS
            }
            Err(_) => ExitCode::FAILURE,
        };
    }
    let threads = threads.or_else(|| available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    // Whatever panics is told once it is made smaller.
    std::panic::set_hook(Box::new(|_| {}));
    let style = ProgressStyle::with_template("{wide_bar} {pos} of {len} seeds, {eta} left");
    let bar = ProgressBar::new(seeds.end.saturating_sub(seeds.start)).with_style(style.expect("a template"));
    let (begun, mut sum, mut first) = (Instant::now(), Figures::default(), seeds.start);
    while first < seeds.end {
        let end = seeds.end.min(first + LINE_EVERY);
        match search(first..end, threads, || bar.inc(1)) {
            Ok(figures) => sum.add(&figures),
            Err(failed) => {
                bar.finish_and_clear();
                println!("{failed}");
                return ExitCode::FAILURE;
            }
        }
        let seconds = begun.elapsed().as_secs();
        bar.suspend(|| {
            println!("seeds {}..{end} hold; {seconds} s on {threads} threads: {sum}", seeds.start);
        });
        first = end;
    }
    bar.finish_and_clear();
    ExitCode::SUCCESS
}
