//! The disk of the coordinator and the workers' spools fills up.

use std::fs;
use std::io::{self, Read};

use nqueens_kernel::random::Random;
use rustix::fs::statvfs;

use super::{Fault, pause};
use crate::check::Reference;
use crate::cluster::Cluster;

pub(super) struct FullDisk;

impl Fault for FullDisk {
    fn name(&self) -> &'static str {
        "disk"
    }

    fn missing(&self, cluster: &Cluster) -> Option<&'static str> {
        (!cluster.setup.sandbox.disks).then_some("it takes a mount namespace, for a small disk")
    }

    fn strike(&self, cluster: &mut Cluster, _: &Reference, random: &mut Random) {
        let ballast = cluster.disk("ballast");
        let room = statvfs(cluster.disk("")).expect("a disk");
        let left = [0, 20 << 10, 200 << 10, 2 << 20][random.index(4)];
        let fill = (room.f_bavail * room.f_frsize).saturating_sub(left) + u64::from(left == 0);
        let mut file = fs::File::create(&ballast).expect("a file");
        let is_full = io::copy(&mut io::repeat(0).take(fill), &mut file).is_err();
        pause(random, 1_000..=4_000);
        cluster.count("disks filled to the last byte", u64::from(is_full));
        let log = cluster.coordinator.as_ref().expect("it is up").said();
        let refused = log.matches("the database failed; ").count();
        cluster.count("times a full disk refused a transaction", refused as u64);
        if random.permille(300) {
            cluster.kill_coordinator();
        }
        fs::remove_file(&ballast).expect("it is there");
        drop(file);
    }
}
