//! A device beside a processor, which fails.

use std::sync::Mutex;

use super::*;

/// What a device does with a batch.
#[derive(Clone, Copy, PartialEq)]
enum Device {
    Counts,
    Fails,
    Miscounts,
}

struct FakeDevice {
    real: Box<dyn Engine>,
    /// What it does with its batches, the last one for good; shared by all engines that are made of it.
    deeds: Arc<Mutex<Vec<Device>>>,
    /// Set when it is at work.
    at_work: Arc<AtomicBool>,
    fault: Option<String>,
}

impl Engine for FakeDevice {
    fn count(&mut self, problem: &Subproblem, control: &Control) -> Result<Tally, Stopped> {
        self.real.count(problem, control)
    }

    fn batch_max(&self) -> usize {
        100
    }

    fn count_batch(
        &mut self,
        problems: &[Subproblem],
        tallies: &mut [Tally],
        control: &Control,
    ) -> Result<(), Stopped> {
        self.at_work.store(true, Ordering::SeqCst);
        assert!(self.fault.is_none(), "a new engine is made after a failure");
        let mut deeds = self.deeds.lock().expect("no panics");
        let deed = if deeds.len() > 1 { deeds.remove(0) } else { deeds[0] };
        self.fault = match deed {
            Device::Counts => None,
            Device::Fails => Some("fell off the bus".to_owned()),
            Device::Miscounts => Some(format!("{COUNTS_WRONG}: 41 for a board with 40 solutions")),
        };
        if self.fault.is_some() {
            // Others have found nothing to do by then.
            (0..1000).for_each(|_| std::thread::yield_now());
            // What it has counted until then counts for nothing.
            tallies.fill(Tally { completions: 7, states: 7 });
            return Err(Stopped);
        }
        tallies.copy_from_slice(&one_by_one(problems, &mut *self.real, control)?);
        Ok(())
    }

    fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }
}

const DEVICE: &str = "abacus";
const FAILED: &str = "abacus-0 (beads) failed and is tried once more: fell off the bus";
const LEFT_ALONE: &str = "abacus-0 (beads) is left alone from now on: fell off the bus";

/// A device of these deeds, alone or beside two threads.
fn start(deeds: &[Device], beside: bool) -> Pool {
    start_with(deeds, |cpu, device| if beside { vec![cpu, device] } else { vec![device] })
}

/// A device of these deeds, and two threads, which wait until it is at work.
fn start_with(deeds: &[Device], choose: impl FnOnce(Crew, Crew) -> Vec<Crew>) -> Pool {
    let deeds = Arc::new(Mutex::new(deeds.to_vec()));
    let at_work = Arc::new(AtomicBool::new(false));
    let factory = move |name: &str| -> Option<Box<dyn Engine>> {
        let at_work = Arc::clone(&at_work);
        if name == "abacus-0" {
            let (real, deeds) = (cpu("scalar")?, Arc::clone(&deeds));
            return Some(Box::new(FakeDevice { real, deeds, at_work, fault: None }));
        }
        let count = move |boards: &[Subproblem], engine: &mut dyn Engine, control: &Control| {
            wait_for(&at_work);
            one_by_one(boards, engine, control)
        };
        Some(Box::new(Fake { real: cpu(name)?, batch_max: 1, count: Arc::new(count) }))
    };
    let kernel = DEVICE.parse().expect("a name");
    let device = Crew {
        engine: "abacus-0".to_owned(),
        kernel,
        family: kernel,
        device: "beads".to_owned(),
        threads: NonZeroUsize::MIN,
        states_per_s: 1e12,
    };
    let cpu = crews(TWO).remove(0);
    Pool::start(Arc::new(factory), choose(cpu, device), PLENTY)
}

/// The names of the engines that have counted these jobs, all of them right.
async fn engines(pool: &Pool, leases: &[Lease]) -> Vec<String> {
    let results = results(pool, leases.len()).await;
    let kernel = |lease: &Lease| {
        assert_eq!(results[&lease.token].counts, expected(lease));
        results[&lease.token].kernel.to_string()
    };
    leases.iter().map(kernel).collect()
}

fn leases(jobs: u32) -> Vec<Lease> {
    (0..jobs).map(|number| lease(9, number)).collect()
}

#[tokio::test]
async fn a_device_and_threads_count_the_same_queue() {
    let leases = leases(40);
    let pool = start(&[Device::Counts], true);
    pool.add(leases.clone());
    let kernels = engines(&pool, &leases).await;
    assert!(kernels.iter().any(|kernel| kernel == DEVICE), "{kernels:?}");
    pool.close();
    let pool = start(&[Device::Counts], false);
    pool.add(leases.clone());
    assert!(engines(&pool, &leases).await.iter().all(|kernel| kernel == DEVICE));
    pool.close();
}

#[tokio::test]
async fn a_device_that_fails_now_and_then_counts_on() {
    let leases = leases(40);
    let pool = start(&[Device::Fails, Device::Counts, Device::Fails, Device::Counts], false);
    pool.add(leases.clone());
    assert!(engines(&pool, &leases).await.iter().all(|kernel| kernel == DEVICE));
    assert_eq!(pool.look().faults, [FAILED], "the first time is told");
    pool.close();
}

/// The canaries of good batches do not prove that it is sound: it has counted wrong before.
#[tokio::test]
async fn a_device_that_counts_wrong_twice_is_left_alone_whatever_it_counted_between() {
    use Device::{Counts, Fails, Miscounts};
    let leases = leases(40);
    let faults = async |deeds: &[Device]| {
        let pool = start(deeds, false);
        pool.add(leases.clone());
        let all = all_counts(&pool, leases.len()).await;
        let counted = leases.iter().filter(|lease| all[&lease.token].is_ok());
        let counted = counted.inspect(|lease| assert_eq!(all[&lease.token], Ok(expected(lease)))).count();
        let faults = pool.look().faults;
        pool.close();
        (faults, counted)
    };
    let wrong = "the device counts wrong: 41 for a board with 40 solutions";
    let once = format!("abacus-0 (beads) failed and is tried once more: {wrong}");
    let twice = format!("abacus-0 (beads) is left alone from now on: {wrong}");
    let (told, counted) = faults(&[Miscounts, Counts, Miscounts, Counts]).await;
    assert_eq!(told, [once.clone(), twice]);
    assert!(counted < leases.len());
    assert_eq!(faults(&[Miscounts, Counts, Fails, Counts]).await, (vec![once], leases.len()));
}

#[tokio::test]
async fn an_equal_device_takes_what_one_that_failed_gives_back() {
    let released = Arc::new(AtomicBool::new(false));
    let may_come = Arc::clone(&released);
    let deeds = Arc::new(Mutex::new(vec![Device::Fails, Device::Counts]));
    let made = Mutex::new(Vec::new());
    let factory = move |name: &str| -> Option<Box<dyn Engine>> {
        let is_first = !made.lock().expect("no panics").contains(&name.to_owned());
        if is_first {
            made.lock().expect("no panics").push(name.to_owned());
        } else {
            // The driver of the one that failed hangs.
            wait_for(&may_come);
        }
        let (real, deeds, at_work) = (cpu("scalar")?, Arc::clone(&deeds), Arc::default());
        Some(Box::new(FakeDevice { real, deeds, at_work, fault: None }))
    };
    let kernel = DEVICE.parse().expect("a name");
    let device = |number| Crew {
        engine: format!("abacus-{number}"),
        kernel,
        family: kernel,
        device: "beads".to_owned(),
        threads: NonZeroUsize::MIN,
        states_per_s: 1e12,
    };
    let pool = Pool::start(Arc::new(factory), vec![device(0), device(1)], PLENTY);
    let leases = leases(1);
    pool.add(leases.clone());
    assert_eq!(engines(&pool, &leases).await, [DEVICE]);
    released.store(true, Ordering::SeqCst);
    pool.close();
}

#[tokio::test]
async fn jobs_of_a_device_that_is_lost_are_counted_by_others() {
    let leases = leases(40);
    let pool = start(&[Device::Fails], true);
    pool.add(leases.clone());
    assert!(engines(&pool, &leases).await.iter().all(|kernel| kernel != DEVICE));
    assert_eq!(pool.look().faults, [FAILED, LEFT_ALONE]);
    pool.close();
}

#[tokio::test]
async fn without_anybody_left_jobs_are_returned_and_no_failures() {
    let leases = leases(3);
    let pool = start(&[Device::Fails], false);
    pool.add(leases.clone());
    pool.abandoned().await;
    let tokens = |finished: Vec<Result<JobResult, ReturnedLease>>| {
        let returned = finished.into_iter().map(|one| one.expect_err("not counted"));
        let mut tokens: Vec<_> =
            returned.map(|ReturnedLease { token, failure }| (token.job.number, failure)).collect();
        tokens.sort_unstable();
        tokens
    };
    let expected = [(0, None), (1, None), (2, None)];
    assert_eq!(tokens(pool.look().finished), expected);
    pool.add(leases.clone());
    assert_eq!(tokens(pool.look().finished), expected);
    let faults = vec![FAILED.to_owned(), LEFT_ALONE.to_owned()];
    assert_eq!(pool.look(), Look { faults, ..Look::default() });
    pool.close();
}
