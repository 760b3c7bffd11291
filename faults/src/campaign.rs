//! Rounds of faults, and their result.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use nqueens_kernel::random::Random;
use tempfile::TempDir;

use crate::check::{Reference, check, check_evidence};
use crate::cluster::{Cluster, Setup, under_test};
use crate::faults::{FAULTS, Fault};
use crate::process::eventually;
use crate::sandbox;

/// Runs a coordinator and workers, breaks them in ways drawn from a seed, and checks after each round that nothing is
/// lost, nothing counted twice, and every count exact.
///
/// The draws follow from the seed; what the processes make of them depends on the machine too. It ends with the first
/// thing that does not hold. As many runs as it takes are counted one after the other, the last one to its end.
#[derive(Clone, Debug, Args)]
pub struct Campaign {
    /// Everything is drawn from it
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Faults, one after the other
    #[arg(long, default_value_t = 40)]
    rounds: u32,

    /// Only these faults
    #[arg(long, value_delimiter = ',', value_parser = FAULTS.map(|fault| fault.name()))]
    only: Vec<String>,

    /// Board size
    #[arg(long, default_value_t = 18)]
    n: u32,

    /// Estimated states a job; at 450000, N = 18 has some 20,000 jobs
    #[arg(long, default_value_t = 450_000)]
    job_states: u64,

    /// The workers' engine; a slow one gives faults time
    #[arg(long, default_value = "reference")]
    kernel: String,

    /// Workers, of one thread each
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=100))]
    workers: u8,

    /// The program under test [default: `nqueens` beside this one]
    #[arg(long)]
    program: Option<PathBuf>,
}

impl Campaign {
    /// Goes through with it.
    ///
    /// # Panics
    /// As soon as something does not hold.
    pub fn lead(self) {
        let sandbox = sandbox::enter();
        let program = under_test(self.program.as_deref());
        let board = format!("{} --plan border --job-states {}", self.n, self.job_states);
        let folder = TempDir::new().expect("a temporary folder");
        let reference = Reference::count(&program, folder.path(), &board);
        println!("seed {}: N = {}, {} jobs, {} workers", self.seed, self.n, reference.jobs(), self.workers);
        let (kernel, workers) = (self.kernel.clone(), self.workers.into());
        let mut random = Random::new(self.seed);
        let setup = Setup { program, board, kernel, workers, sandbox };
        let mut cluster = Cluster::start(setup, folder, &mut random);
        cluster.runtime.spawn(end_by_signal());
        let faults = self.faults(&cluster);
        let begun = Instant::now();
        cluster.submit();
        let mut deck = Vec::new();
        for round in 1..=self.rounds {
            let fault = draw(&mut deck, &faults, &mut random);
            let mut random = random.fork();
            println!("{:>7.1} s: round {round}: {}", begun.elapsed().as_secs_f64(), fault.name());
            fault.strike(&mut cluster, &reference, &mut random);
            cluster.count(fault.name(), 1);
            cluster.mend();
            cluster.wait_for_results(1);
            check(&cluster, &reference);
        }
        finish(&cluster);
        let ledger = check(&cluster, &reference);
        cluster.stop_coordinator();
        check_evidence(&cluster, &ledger);
        println!("{:>7.1} s: all is exact", begun.elapsed().as_secs_f64());
        println!("{:>9} acknowledgements", cluster.recording_proxy.seen());
        println!("{:>9} results in the ledger", ledger.results.len());
        println!("{:>9} leases of jobs that may have been begun ran out", ledger.lapses);
        for (what, times) in cluster.tally() {
            println!("{times:>9} {what}");
        }
    }

    /// Those that can be had here.
    fn faults(&self, cluster: &Cluster) -> Vec<&'static dyn Fault> {
        let wanted =
            |fault: &&dyn Fault| self.only.is_empty() || self.only.iter().any(|name| name == fault.name());
        let mut faults = Vec::new();
        for fault in FAULTS.into_iter().filter(wanted) {
            match fault.missing(cluster) {
                None => faults.push(fault),
                Some(what) => eprintln!("NOT TRIED: {}: {what}", fault.name()),
            }
        }
        assert!(!faults.is_empty(), "none of these faults can be had here");
        faults
    }
}

/// Draws from a deck in which each fault stands as often as it weighs; a new one is shuffled when it is used up.
fn draw<'a>(deck: &mut Vec<&'a dyn Fault>, faults: &[&'a dyn Fault], random: &mut Random) -> &'a dyn Fault {
    if deck.is_empty() {
        deck.extend(faults.iter().flat_map(|fault| std::iter::repeat_n(*fault, fault.weight())));
    }
    deck.swap_remove(random.index(deck.len()))
}

/// Lets the last run end in peace.
fn finish(cluster: &Cluster) {
    while !cluster.tend() {
        let seen = cluster.recording_proxy.seen();
        eventually("work goes on", || {
            (cluster.recording_proxy.seen() > seen || cluster.tend()).then_some(())
        });
    }
}

/// The first process of a namespace hears only what it listens to.
pub(crate) async fn end_by_signal() {
    if tokio::signal::ctrl_c().await.is_ok() {
        std::process::exit(130);
    }
}
