//! Every job of every plan comes to the same by every independent engine, and a wrong count shows.

use std::num::NonZeroUsize;

use nqueens_evidence::recount::{Recount, independent_engine, recount};
use nqueens_evidence::sample::Claim;
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::{Counts, Totals};
use nqueens_kernel::engine::{Control, Kernel, cpu};
use nqueens_kernel::job::Class;
use nqueens_kernel::known::published;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_kernel::symmetric::symmetric_counts;
use nqueens_model::message::EncodedJob;

/// All jobs of a plan, said to have come to nothing.
fn claims(n: BoardSize, kind: PlanKind, kernel: Kernel) -> Vec<Claim> {
    let jobs = Plan::with_states_per_job(n, kind, 200).jobs();
    let claim = |(number, job): (u32, nqueens_kernel::job::Job)| {
        let (class, bound1, prefixes) = (job.class(), job.bound1(), job.encode());
        Claim {
            number,
            job: EncodedJob { n, class, bound1, prefixes },
            counts: Counts::ZERO,
            kernel: kernel.into(),
            worker: 1,
        }
    };
    (0..).zip(jobs).map(claim).collect()
}

fn recounted(claims: &[Claim], kernel: Option<Kernel>, threads: usize) -> Vec<Recount> {
    let mut all = Vec::new();
    let threads = NonZeroUsize::new(threads).expect("not none");
    recount(claims, kernel, threads, &cpu, &Control::default(), |recount| all.push(recount));
    all.sort_by_key(|recount| recount.claim.number);
    all
}

#[test]
fn all_roads_come_to_the_published_count() {
    for n in [6, 8, 9, 10].map(|n| BoardSize::new(n).expect("a board")) {
        let symmetric = symmetric_counts(n, &Control::default()).expect("nobody stops it");
        for kind in PlanKind::ALL {
            for kernel in Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()) {
                let found = recounted(&claims(n, kind, Kernel::Reference), Some(kernel), 2);
                let counts = found.into_iter().map(|recount| recount.found.expect("a count"));
                let sum = counts.fold(Totals::default(), |sum, counts| sum.checked_add(counts).expect("few"));
                let orbits = sum.sorted(symmetric).expect("whole orbits");
                assert_eq!(orbits, published(n).expect("published").orbits, "N = {n}, {kind}, {kernel}");
            }
        }
    }
}

#[test]
fn a_wrong_count_differs() {
    let n = BoardSize::new(9).expect("a board");
    for kind in PlanKind::ALL {
        let mut claims = claims(n, kind, Kernel::Portable);
        for (claim, right) in claims.clone().iter_mut().zip(recounted(&claims, None, 1)) {
            let right = right.found.expect("a count");
            for (off, agrees) in [(0, true), (1, false), (1 << 32, false)] {
                claim.counts = Counts { count8: right.count8 + off, ..right };
                assert_eq!(recounted(std::slice::from_ref(claim), None, 1)[0].agrees(), agrees);
            }
        }
        claims[0].job.prefixes.clear();
        let nothing = recounted(&claims[..1], None, 1).remove(0);
        assert_eq!(nothing.found, Err("it is no job: a job has at least one prefix, not none".to_owned()));
        assert!(!nothing.agrees());
    }
}

/// What is recounted by whom, to the letter; engines of one family are recounted by the same.
#[test]
fn engines_of_a_family_are_recounted_by_one_of_another() {
    let best = Kernel::best();
    assert!(best.multiplies());
    for class in Class::ALL {
        for block in [Kernel::Portable, Kernel::Avx2, Kernel::Avx512] {
            assert_eq!(independent_engine(class, block.into()), Kernel::Scalar, "{class} {block}");
        }
        for plain in [Kernel::Reference, Kernel::Scalar] {
            let expected = if class == Class::Colours { Kernel::Scalar } else { best };
            assert_eq!(independent_engine(class, plain.into()), expected, "{class} {plain}");
        }
        let foreign = "cuda-sm90".parse().expect("a name");
        assert_eq!(independent_engine(class, foreign), independent_engine(class, best.into()), "{class}");
    }
}

#[test]
fn what_an_unknown_engine_counted_is_recounted() {
    let n = BoardSize::new(8).expect("a board");
    for kind in PlanKind::ALL {
        let mut claims = claims(n, kind, Kernel::Reference);
        for claim in &mut claims {
            claim.kernel = "cuda-sm90".parse().expect("a name");
        }
        for recount in recounted(&claims, None, 1) {
            assert_eq!(recount.kernel, independent_engine(recount.claim.job.class, recount.claim.kernel));
            assert!(recount.found.is_ok());
        }
    }
}

#[test]
fn whoever_is_stopped_tells_what_was_done() {
    let n = BoardSize::new(20).expect("a board");
    let job = Plan::with_states_per_job(n, PlanKind::Colours, 1 << 62).jobs().next().expect("a job");
    let job = EncodedJob { n, class: job.class(), bound1: 0, prefixes: job.encode() };
    let long = Claim { number: 1, job, counts: Counts::ZERO, kernel: Kernel::Avx2.into(), worker: 1 };
    let short = claims(BoardSize::new(6).expect("a board"), PlanKind::Colours, Kernel::Avx2).remove(0);
    let control = Control::default();
    let mut done = Vec::new();
    recount(&[short, long], None, NonZeroUsize::MIN, &cpu, &control, |recount| {
        done.push(recount.claim.number);
        control.stop();
    });
    assert_eq!(done, [0]);
}
