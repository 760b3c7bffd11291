//! Clocks that jump in both directions: Debian's libfaketime stands between the processes and the system's clocks.

use std::fs;
use std::path::{Path, PathBuf};

use nqueens_kernel::random::Random;

use super::{Fault, pause};
use crate::check::Reference;
use crate::cluster::Cluster;

/// Seconds.
const DAY: u64 = 86_400;

pub(super) struct Clock;

impl Fault for Clock {
    fn name(&self) -> &'static str {
        "clock"
    }

    fn missing(&self, _: &Cluster) -> Option<&'static str> {
        library().is_none().then_some("it takes Debian's package faketime")
    }

    fn strike(&self, cluster: &mut Cluster, _: &Reference, random: &mut Random) {
        let library = library().expect("looked for before").display().to_string();
        let offset = cluster.scratch("offset");
        let jump = |seconds: u64, sign: char| {
            let new = offset.with_extension("new");
            fs::write(&new, format!("{sign}{seconds}\n")).expect("a file");
            fs::rename(&new, &offset).expect("it is there");
        };
        // Leases go by the monotonic clock, which never goes back; on a machine that was suspended it leaps.
        let leaps = random.permille(300);
        cluster.variables = vec![
            ("LD_PRELOAD", library),
            ("FAKETIME_TIMESTAMP_FILE", offset.display().to_string()),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_DISABLE_SHM", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", u8::from(!leaps).to_string()),
        ];
        jump(0, '+');
        let whom = random.index(cluster.stations.len());
        cluster.kill_worker(whom);
        cluster.start_worker(whom);
        cluster.kill_coordinator();
        cluster.start_coordinator();
        let mut ahead = 0;
        for _ in 0..random.number(2..=4) {
            let most = [60, DAY, 4_000 * DAY][random.index(3)];
            let by = random.number(1..=most);
            if leaps {
                ahead += by;
                jump(ahead, '+');
                cluster.count("leaps of all clocks", 1);
            } else {
                jump(by, if random.permille(500) { '+' } else { '-' });
                cluster.count("jumps of the wall clock", 1);
            }
            cluster.wait_for_results(1);
            pause(random, 200..=1_500);
        }
        cluster.variables.clear();
        cluster.kill_worker(whom);
        cluster.kill_coordinator();
    }
}

fn library() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?.flatten().map(|folder| folder.path());
    let library = |folder: PathBuf| folder.join("faketime/libfaketimeMT.so.1");
    folders.map(library).find(|path| Path::exists(path))
}
