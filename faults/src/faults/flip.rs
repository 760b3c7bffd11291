//! Bytes of the database change on disk: the program reports it, or the total is not affected.

use std::fs;

use nqueens_kernel::random::Random;

use super::Fault;
use crate::check::Reference;
use crate::cluster::Cluster;

/// Files that are changed, in a round.
const FILES: u64 = 6;

pub(super) struct Flip;

impl Fault for Flip {
    fn name(&self) -> &'static str {
        "flip"
    }

    fn strike(&self, cluster: &mut Cluster, reference: &Reference, random: &mut Random) {
        // One that ends as it should leaves all in the database, one that is killed leaves most in its log.
        if random.permille(700) {
            cluster.stop_coordinator();
        } else {
            cluster.kill_coordinator();
        }
        let database = cluster.database();
        let [db, wal] = ["db", "db-wal"].map(|extension| fs::read(database.with_extension(extension)));
        let files = [db.expect("a database"), wal.unwrap_or_default()];
        cluster.start_coordinator();
        let copy = cluster.scratch("flipped.db");
        for _ in 0..FILES {
            let mut flipped = files.clone();
            for _ in 0..random.number(1..=3) {
                let which = usize::from(!flipped[1].is_empty() && random.permille(700));
                let file = &mut flipped[which];
                // Most of some pages is empty; what is not is more worth a try.
                let at = std::iter::repeat_with(|| random.index(file.len())).find(|at| file[*at] != 0);
                file[at.expect("some byte is not 0")] ^= 1 << random.index(8);
            }
            drop(fs::remove_file(copy.with_extension("db-shm")));
            fs::write(&copy, &flipped[0]).expect("a file");
            fs::write(copy.with_extension("db-wal"), &flipped[1]).expect("a file");
            let doctor = cluster.nqueens("doctor --db flipped.db");
            let outcome = cluster.nqueens(&format!("run {} --db flipped.db --json", cluster.setup.board));
            let said = outcome.stderr.lines().last().unwrap_or_default();
            match outcome.code {
                0 => {
                    let total = format!("\"total\":\"{}\"", reference.total());
                    assert!(outcome.stdout.contains(&total), "{}", outcome.stdout);
                    cluster.count("flipped files with the exact total", 1);
                }
                1 if said.starts_with("nqueens: ") => cluster.count("flipped files that have no total", 1),
                code => panic!("{code}: {}", outcome.stderr),
            }
            cluster.count("flipped files in which the doctor finds damage", u64::from(doctor.code == 1));
        }
    }
}
