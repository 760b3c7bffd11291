//! Earlier calls and an earlier spool are sent again.

use std::fs;

use nqueens_kernel::random::Random;

use super::{Fault, pause};
use crate::check::Reference;
use crate::cluster::Cluster;
use crate::process::eventually;
use crate::proxy::Weather;

pub(super) struct Replay;

impl Fault for Replay {
    fn name(&self) -> &'static str {
        "replay"
    }

    fn strike(&self, cluster: &mut Cluster, _: &Reference, random: &mut Random) {
        // A worker that hears nothing fills its spool.
        let at = random.index(cluster.stations.len());
        let spool = cluster.disk(&cluster.stations[at].name).join("results");
        cluster.stations[at].proxy.set(Weather { stalled: true, ..Weather::default() });
        pause(random, 500..=1_500);
        let old = fs::read(&spool).expect("a spool");
        cluster.stations[at].proxy.set(Weather::default());
        if random.permille(500) {
            cluster.kill_coordinator();
            cluster.start_coordinator();
        }
        // A coordinator that was just restarted may still be unknown to the recording proxy's connection.
        let repeated = eventually("calls are answered again", || {
            let calls = random.index(100);
            let answered = cluster.runtime.block_on(cluster.recording_proxy.repeat(calls, random));
            (answered > 0).then_some(answered)
        });
        cluster.count("calls repeated", repeated as u64);
        cluster.kill_worker(at);
        fs::write(&spool, &old).expect("a file");
        cluster.count("bytes of old spools put back", old.len() as u64);
    }
}
