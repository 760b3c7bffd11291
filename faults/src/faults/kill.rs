//! `kill -9` of any process at any moment.

use nqueens_kernel::random::Random;

use super::{Fault, pause};
use crate::check::Reference;
use crate::cluster::Cluster;
use crate::process::Background;

pub(super) struct Kill;

impl Fault for Kill {
    fn name(&self) -> &'static str {
        "kill"
    }

    fn weight(&self) -> usize {
        5
    }

    fn strike(&self, cluster: &mut Cluster, _: &Reference, random: &mut Random) {
        for _ in 0..random.number(4..=10) {
            pause(random, 10..=400);
            let victim = random.index(cluster.stations.len() + 1);
            if victim < cluster.stations.len() {
                cluster.kill_worker(victim);
                pause(random, 0..=50);
                cluster.start_worker(victim);
                continue;
            }
            cluster.kill_coordinator();
            // Some lives are too short for a single call.
            for _ in 0..random.number(0..=2) {
                let mut unborn = Background::start(&mut cluster.coordinator_command());
                pause(random, 0..=60);
                unborn.kill();
                cluster.count("coordinators killed while they start", 1);
            }
            pause(random, 0..=300);
            cluster.start_coordinator();
        }
    }
}
