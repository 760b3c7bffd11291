//! The power fails while the database's log is written: only part of it is there, up to any frame or within one.

use std::fs;

use nqueens_coordinator::Reader;
use nqueens_kernel::random::Random;

use super::Fault;
use crate::check::Reference;
use crate::cluster::Cluster;
use crate::ledger::Ledger;
use crate::process::eventually;
use crate::wal::Wal;

/// Enough results for a log of a few hundred frames.
const RESULTS: u64 = 40;

/// A log is cut at no more frames than these.
const LENGTHS_MAX: usize = 200;

/// Logs that are cut and then counted to their end.
const RESUMED: usize = 2;

pub(super) struct Cut;

impl Fault for Cut {
    fn name(&self) -> &'static str {
        "cut"
    }

    fn strike(&self, cluster: &mut Cluster, reference: &Reference, random: &mut Random) {
        let (database, copy) = (cluster.database(), cluster.scratch("cut.db"));
        // All that there is goes into the database, and what comes is in the log.
        cluster.stop_coordinator();
        let base = fs::read(&database).expect("a database");
        cluster.start_coordinator();
        cluster.wait_for_results(RESULTS);
        let wal = database.with_extension("db-wal");
        eventually("there is a log", || fs::metadata(&wal).is_ok_and(|file| file.len() > 0).then_some(()));
        cluster.kill_coordinator();
        let acknowledged = cluster.recording_proxy.acknowledged();
        if fs::read(&database).expect("a database") != base {
            // It has grown so long that it was copied into the database; cut then, it would not be the same.
            cluster.count("logs that were too long to be cut", 1);
            return;
        }
        let wal = Wal::new(fs::read(&wal).expect("a log")).expect("frames");
        cluster.start_coordinator();

        let open = |frames: usize, more: usize| {
            fs::write(&copy, &base).expect("a file");
            fs::write(copy.with_extension("db-wal"), wal.cut(frames, more)).expect("a file");
            drop(fs::remove_file(copy.with_extension("db-shm")));
            let ledger = cluster.runtime.block_on(async {
                let reader = Reader::open(&copy).await.expect("it opens");
                // Between the ends of two transactions all stays as it is.
                if wal.ends_transaction(frames) {
                    reader.examine().await.expect("it is sound");
                }
                let ledger = Ledger::read(&copy).await;
                reader.close().await;
                ledger
            });
            let promised = acknowledged
                .iter()
                .filter(|(_, result)| result.mark.is_some_and(|mark| wal.holds(frames, mark)));
            ledger.check(reference, promised);
            ledger.results
        };
        let whole = open(wal.frames(), 0);
        let mut before = 0;
        // A log of a thousand frames would take minutes.
        let lengths: Vec<_> = (0..=wal.frames()).step_by(1 + wal.frames() / LENGTHS_MAX).collect();
        for &frames in &lengths {
            let results = open(frames, 0);
            assert!(
                whole.starts_with(&results) && results.len() >= before,
                "commits come back in their order"
            );
            before = results.len();
            if frames < wal.frames() && random.permille(200) {
                let within = 1 + random.index(wal.frame_bytes() - 1);
                assert_eq!(open(frames, within), results, "part of a frame is none");
                cluster.count("logs cut within a frame", 1);
            }
        }
        cluster.count("logs cut at a frame", lengths.len() as u64);
        for _ in 0..RESUMED {
            open(random.index(wal.frames() + 1), 0);
            let outcome = cluster.nqueens(&format!("run {} --db cut.db --json", cluster.setup.board));
            assert_eq!(outcome.code, 0, "{}", outcome.stderr);
            assert!(
                outcome.stdout.contains(&format!("\"total\":\"{}\"", reference.total())),
                "{}",
                outcome.stdout
            );
            cluster.count("cut ledgers counted to their end", 1);
        }
    }
}
