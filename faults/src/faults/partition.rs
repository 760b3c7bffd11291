//! A network partition: hosts whose cables are pulled.

use nqueens_kernel::random::Random;

use super::{Fault, pause};
use crate::check::Reference;
use crate::cluster::{Cluster, set_links};

pub(super) struct Partition;

impl Fault for Partition {
    fn name(&self) -> &'static str {
        "partition"
    }

    fn missing(&self, cluster: &Cluster) -> Option<&'static str> {
        (!cluster.setup.sandbox.hosts).then_some("it takes network namespaces, and `ip` of Debian's iproute2")
    }

    fn strike(&self, cluster: &mut Cluster, _: &Reference, random: &mut Random) {
        let cut_off = cluster.some_stations(random);
        set_links(&cut_off, "down");
        cluster.count("hosts cut off", cut_off.len() as u64);
        // Some lose their leases, some come back in time.
        pause(random, 500..=7_000);
        set_links(&cut_off, "up");
    }
}
