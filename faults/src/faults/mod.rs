//! The faults, one file each. A new fault is added to [`FAULTS`].

mod clock;
mod cut;
mod disk;
mod flip;
mod kill;
mod partition;
mod replay;
mod restore;
mod stop;
mod weather;

use std::ops::RangeInclusive;
use std::thread::sleep;
use std::time::Duration;

use nqueens_kernel::random::Random;

use crate::check::Reference;
use crate::cluster::Cluster;

/// One way in which things go wrong.
pub(crate) trait Fault: Sync {
    /// What it is called, on the command line too.
    fn name(&self) -> &'static str;

    /// How often it comes, beside the others.
    fn weight(&self) -> usize {
        1
    }

    /// What it would take and is not to be had here.
    fn missing(&self, _cluster: &Cluster) -> Option<&'static str> {
        None
    }

    /// Does its harm and puts right what would not mend by itself, except for processes that are down: these are
    /// started again after it. What is special about it, it checks; whatever holds at all times is checked after it.
    fn strike(&self, cluster: &mut Cluster, reference: &Reference, random: &mut Random);
}

pub(crate) const FAULTS: [&dyn Fault; 10] = [
    &kill::Kill,
    &stop::Stop,
    &replay::Replay,
    &weather::BadWeather,
    &partition::Partition,
    &disk::FullDisk,
    &clock::Clock,
    &restore::Restore,
    &cut::Cut,
    &flip::Flip,
];

/// Lets so many milliseconds pass.
fn pause(random: &mut Random, millis: RangeInclusive<u64>) {
    sleep(Duration::from_millis(random.number(millis)));
}
