//! The coordinator's disk is lost, and an older backup takes its place while the workers continue.

use std::fs;

use nqueens_kernel::random::Random;

use super::{Fault, pause};
use crate::check::Reference;
use crate::cluster::Cluster;

pub(super) struct Restore;

impl Fault for Restore {
    fn name(&self) -> &'static str {
        "restore"
    }

    fn strike(&self, cluster: &mut Cluster, _: &Reference, random: &mut Random) {
        let (backup, database) = (cluster.scratch("backup.db"), cluster.database());
        // What is acknowledged by now, the backup has.
        let acknowledged = cluster.recording_proxy.acknowledged();
        let outcome = cluster.nqueens(&format!("backup --db {} backup.db", database.display()));
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let kept = acknowledged.len();
        // No run may begin meanwhile: the backup would know nothing of it, as is told in docs/cluster.md.
        pause(random, 100..=3_000);
        cluster.kill_coordinator();
        let lost = cluster.recording_proxy.acknowledged().len() - kept;
        for suffix in ["", "-wal", "-shm"] {
            drop(fs::remove_file(database.with_extension(format!("db{suffix}"))));
        }
        fs::copy(&backup, &database).expect("a file");
        fs::remove_file(&backup).expect("it is there");
        cluster.recording_proxy.restore(acknowledged);
        cluster.count("acknowledged results lost with a disk, and counted again", lost as u64);
    }
}
