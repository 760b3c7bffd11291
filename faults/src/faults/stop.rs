//! Processes that are stopped and continued (SIGSTOP, SIGCONT): their leases expire meanwhile, and they do not know.

use nqueens_kernel::random::Random;

use super::{Fault, pause};
use crate::check::Reference;
use crate::cluster::Cluster;

pub(super) struct Stop;

impl Fault for Stop {
    fn name(&self) -> &'static str {
        "stop"
    }

    fn strike(&self, cluster: &mut Cluster, _: &Reference, random: &mut Random) {
        let sleepers = cluster.some_stations(random);
        cluster.signal_workers(&sleepers, "-STOP");
        cluster.count("workers stopped past their lease", sleepers.len() as u64);
        // Leases last three seconds, and are looked after each second.
        pause(random, 4_500..=6_500);
        cluster.signal_workers(&sleepers, "-CONT");
        if random.permille(300) {
            // A coordinator that sleeps finds all leases overdue, and all workers there.
            let coordinator = cluster.coordinator.as_ref().expect("it is up");
            coordinator.signal("-STOP");
            pause(random, 500..=5_000);
            coordinator.signal("-CONT");
            cluster.count("coordinators stopped", 1);
        }
    }
}
