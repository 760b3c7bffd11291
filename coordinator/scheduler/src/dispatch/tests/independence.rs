//! Who is asked for a second count: as long as there is other work, whoever counts by an engine of another family.

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::engine::Kernel;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_model::kernel::{Capability, Family, KernelName};
use nqueens_model::message::{JobResult, Verdict, Wanted};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::super::*;
use super::registration;
use super::world::{result, truth};

const JOBS: usize = 10;

/// An engine's name and what its program says that it is of.
type NamedEngine = (KernelName, Option<Family>);

fn name(text: &str) -> KernelName {
    text.parse().expect("a name")
}

fn engine() -> impl Strategy<Value = NamedEngine> {
    let ours = prop::sample::select(Kernel::ALL.to_vec()).prop_map(KernelName::from);
    let foreign = prop::sample::select(vec!["cuda", "opencl"]).prop_map(name);
    let family = prop::sample::select(vec!["block-search", "row-masks", "dancing-links"]).prop_map(name);
    (prop_oneof![ours, foreign], prop::option::of(family))
}

/// Whether the second of some machines is asked for a check of what the first has counted. All are heard of, and there is
/// other work.
fn is_asked(plan: PlanKind, engines: &[NamedEngine]) -> bool {
    let mut dispatch = Dispatch::new(Policy::default(), Incarnation::from_random(1), [0; 32]);
    let plan = Plan::new(BoardSize::new(20).expect("a board"), plan);
    let id = RunId::from_random(7);
    let settings = RunSettings { id, plan, seed: 1, priority: 0, replicate_ppm: 1_000_000 };
    dispatch.add_run(Run::planned(&settings, &[1; JOBS]));
    let workers = (1..).zip(engines).filter_map(|(number, (kernel, said))| {
        let (machine, id) = (format!("machine {number}"), WorkerId::new(number)?);
        let capability = said.map(|family| Capability { family, device: String::new(), states_per_s: 1 });
        let worker = Registration { capability, ..registration(&machine, kernel.as_str(), 1) };
        dispatch.add_worker(id, &worker, Credential::shared());
        dispatch.heartbeat(0, id, &[]);
        Some(id)
    });
    let workers: Vec<_> = workers.collect();
    let [token] = dispatch.grant(0, workers[0], Wanted::new(1, 1))[..] else { panic!("one job") };
    let counted = JobResult { kernel: engines[0].0, ..result(token, truth(token.job.number)) };
    assert_eq!(dispatch.report(0, workers[0], &counted, None, true).verdict, Verdict::Accepted);
    let [second] = dispatch.grant(1, workers[1], Wanted::new(1, 1))[..] else { panic!("one job") };
    second.job == token.job
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(3), failure_persistence: None, ..ProptestConfig::with_cases(250) })]

    #[test]
    fn checks_are_kept_for_independent_engines(
        plan in prop::sample::select(PlanKind::ALL.to_vec()), engines in prop::collection::vec(engine(), 2..5)
    ) {
        let families: Vec<_> = engines.iter().map(|(kernel, said)| kernel.family(*said, plan)).collect();
        let is_independent = families[1] != families[0];
        let nobody_is = families.iter().all(|family| *family == families[0]);
        prop_assert_eq!(is_asked(plan, &engines), is_independent || nobody_is);
    }
}

#[test]
fn other_instructions_are_no_other_engine() {
    let [avx2, avx512, scalar] =
        [Kernel::Avx2, Kernel::Avx512, Kernel::Scalar].map(|kernel| (kernel.into(), None));
    for plan in PlanKind::ALL {
        assert!(!is_asked(plan, &[avx512, avx2, scalar]), "{plan}: the check is kept for scalar");
        assert!(is_asked(plan, &[avx512, scalar, avx2]), "{plan}");
        assert!(is_asked(plan, &[avx512, avx2]), "{plan}: better than none");
    }
    let cuda = |family| (name("cuda"), Some(name(family)));
    assert!(
        !is_asked(PlanKind::Border, &[avx2, cuda("block-search"), scalar]),
        "it says that it is of our search"
    );
    assert!(is_asked(PlanKind::Border, &[avx2, cuda("dancing-links"), scalar]));
    assert!(
        !is_asked(PlanKind::Colours, &[scalar, (Kernel::Reference.into(), None), avx2]),
        "one search of colours"
    );
}
