//! Ledgers made by hand: counts beyond 2^32, and damage to every single bit.

use nqueens_evidence::chain::ChainWriter;
use nqueens_evidence::finding::{Check, CheckResult};
use nqueens_evidence::line::{FORMAT, Header, JobLine, LedgerResult, Line, TotalLine, WorkerLine};
use nqueens_evidence::sample::Sample;
use nqueens_evidence::verify::{Report, verify};
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::{Counts, Totals};
use nqueens_kernel::engine::Control;
use nqueens_kernel::job::Class;
use nqueens_kernel::known::published;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_model::id::RunId;

/// A ledger whose one job found this, by an engine that is not known here.
fn ledger(n: u32, solutions: u64) -> Vec<u8> {
    ledger_of(n, solutions, 1, 1)
}

/// The same, with a worker that had so many threads and took so long.
fn ledger_of(n: u32, solutions: u64, threads: u32, elapsed_us: u64) -> Vec<u8> {
    let n = BoardSize::new(n).expect("a board");
    let plan = Plan::with_states_per_job(n, PlanKind::Colours, 1 << 62);
    let job = plan.jobs().next().expect("a job");
    let known = published(n).expect("published");
    let counts = Counts::plain(solutions);
    let [name, build, kernels] = ["one", "test", "cuda-sm90,avx2"].map(str::to_owned);
    let lines = [
        Line::Ledger(Header {
            format: FORMAT,
            run: RunId::from_random(1),
            n,
            plan: plan.kind(),
            cells: plan.cells(),
            states_per_job: plan.states_per_job(),
            jobs: 1,
            fingerprint: plan.fingerprint(),
            seed: 1,
            created_at_ms: 1,
            finished_at_ms: Some(2),
            build: build.clone(),
            total: known.total,
        }),
        Line::Job(JobLine {
            number: 0,
            class: Class::Colours,
            bound1: 0,
            bytes: job.encode(),
            result: LedgerResult {
                counts,
                kernel: "cuda-sm90".parse().expect("a name"),
                worker: 1,
                epoch: 1,
                states: 1,
                elapsed_us,
                cpu_us: None,
                reported_at_ms: 2,
            },
        }),
        Line::Worker(WorkerLine {
            worker: 1,
            name,
            credential: None,
            build,
            kernels,
            device: Some("abacus".to_owned()),
            threads,
            jobs: 1,
            counts: counts.into(),
        }),
        Line::Total(TotalLine {
            counts: Totals { solutions: solutions.into(), ..Totals::default() },
            orbits: known.orbits,
            total: known.total,
        }),
    ];
    let mut text = Vec::new();
    let mut writer = ChainWriter::new(&mut text);
    for line in &lines {
        writer.write(line).expect("to memory");
    }
    writer.finish().expect("to memory");
    text
}

fn verified(text: &[u8]) -> Report {
    verify(text, &mut Sample::new(0, 0), &Control::default()).expect("nobody stops it")
}

#[test]
fn large_counts_are_believed_as_they_are_and_not_wrapped() {
    let total = 4_968_057_848;
    let right = verified(&ledger(19, total));
    assert!(right.passed(), "{:?}", right.findings);
    assert_eq!(right.workers[&1], "one");
    let wrapped = verified(&ledger(19, total & u64::from(u32::MAX)));
    let failed: Vec<_> =
        wrapped.findings.iter().filter(|(_, verdict)| matches!(verdict, CheckResult::Failed(_))).collect();
    let said =
        CheckResult::Failed("the total 673090552 differs from the published count 4968057848".to_owned());
    assert_eq!(failed, [&(Check::Published, said)]);
    assert!(!wrapped.passed());
}

#[test]
fn a_result_takes_no_longer_than_the_threads_of_its_worker_had() {
    // The run took a millisecond; clocks may differ by a minute.
    let minute = 60_001_000;
    for threads in [1, 2, 64] {
        let work = |elapsed_us| {
            let found = verified(&ledger_of(6, 4, threads, elapsed_us)).findings;
            found.into_iter().find(|(check, _)| *check == Check::Work).expect("it is made").1
        };
        let most = u64::from(threads) * minute;
        assert!(matches!(work(most), CheckResult::Passed(_)), "{threads}");
        let said =
            "the result of job 0 took more time than the threads of worker 1 had until then".to_owned();
        assert_eq!(work(most + 1), CheckResult::Failed(said));
    }
}

#[test]
fn every_flipped_bit_and_every_cut_is_found() {
    let mut text = ledger(6, 4);
    assert!(verified(&text).passed());
    for at in 0..text.len() {
        assert!(!verified(&text[..at]).passed(), "cut off at {at}");
        for bit in 0..8 {
            text[at] ^= 1 << bit;
            assert!(!verified(&text).passed(), "bit {bit} of byte {at}");
            text[at] ^= 1 << bit;
        }
    }
}

#[test]
fn whoever_is_stopped_has_no_report() {
    let control = Control::default();
    control.stop();
    assert!(verify(&ledger(19, 1)[..], &mut Sample::new(0, 0), &control).is_err());
}
