//! Spools in real files: kept, torn, damaged, rewritten.

use std::num::NonZeroU32;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use nqueens_kernel::counts::Counts;
use nqueens_kernel::engine::Kernel;
use nqueens_kernel::job::Job;
use nqueens_model::id::{JobId, LeaseToken, RunId};
use nqueens_proto::v1;
use proptest::prelude::*;
use prost::Message;
use tempfile::TempDir;

use super::record::checksum;
use super::*;

fn result(seed: u64) -> JobResult {
    let job = JobId { run: RunId::from_random(seed.wrapping_mul(0x9e37)), number: 7 };
    let ticket = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let token = LeaseToken { job, epoch: NonZeroU32::MIN, ticket };
    let counts = Counts { count4: seed % 3, count8: seed, ..Counts::ZERO };
    // Every other one has parts.
    let parts = if seed.is_multiple_of(2) { vec![Counts::ZERO, counts, Counts::ZERO] } else { Vec::new() };
    JobResult {
        token,
        counts,
        parts,
        kernel: Kernel::ALL[0].into(),
        states: seed,
        elapsed_us: seed / 2,
        cpu_us: Some(seed / 3),
    }
}

fn results(count: u64) -> Vec<JobResult> {
    (1..=count).map(|number| result(number * 12_345)).collect()
}

fn read(bytes: &[u8]) -> Vec<JobResult> {
    Contents::read(bytes).payloads.into_iter().map(|payload| decode(payload).expect("ours")).collect()
}

fn mode(path: &Path) -> u32 {
    path.metadata().expect("it is there").permissions().mode() & 0o777
}

#[test]
fn results_outlive_their_process() {
    let place = TempDir::new().expect("a directory");
    let dir = place.path().join("deep/spool");
    let spool = Spool::open(&dir).expect("a new spool");
    assert!(matches!(Spool::open(&dir), Err(SpoolError::InUse(_))), "it is locked");
    spool.append(&results(2)).expect("stored");
    spool.append(&[result(9)]).expect("stored");
    drop(spool);

    let mut spool = Spool::open(&dir).expect("the lock went with its holder");
    assert_eq!(spool.take_recovered(), [results(2), vec![result(9)]].concat());
    assert_eq!(spool.take_recovered(), []);
    spool.reject(&[result(9)]).expect("set aside");
    spool.reject(&[result(10)]).expect("set aside");
    spool.write(&Write::Clear).expect("emptied");
    spool.append(&[result(5)]).expect("stored behind what was cleared");
    drop(spool);

    assert_eq!(Spool::open(&dir).expect("a spool").take_recovered(), [result(5)]);
    let modes = ["lock", "results", "rejected"].map(|file| mode(&dir.join(file)));
    assert_eq!((modes, mode(&dir)), ([0o600; 3], 0o700));
    let rejected = std::fs::read(dir.join("rejected")).expect("a file");
    assert_eq!(read(&rejected), [result(9), result(10)]);
}

#[test]
fn the_largest_result_is_kept() {
    let parts = vec![Counts::from([(1 << 57) - 1; 4]); usize::try_from(Job::PARTS_MAX).expect("64")];
    let counts = parts.iter().fold(Counts::ZERO, |sum, part| sum.checked_add(*part).expect("below 2^63"));
    let largest = JobResult {
        counts,
        parts,
        states: u64::MAX >> 1,
        elapsed_us: u64::MAX >> 1,
        cpu_us: Some(u64::MAX >> 1),
        ..result(1)
    };
    assert_eq!(read(&record(&largest)), [largest]);
}

#[test]
fn a_torn_tail_costs_only_itself() {
    let (first, second) = (record(&result(1)), record(&result(2)));
    let bytes = [first.clone(), second].concat();
    for end in 0..=bytes.len() {
        let whole = usize::from(end >= first.len()) + usize::from(end == bytes.len());
        assert_eq!(read(&bytes[..end]), [result(1), result(2)][..whole], "cut at {end}");
    }
    // And the file is cut so that what comes next stands behind whole records.
    let place = TempDir::new().expect("a directory");
    std::fs::write(place.path().join("results"), &bytes[..bytes.len() - 1]).expect("a file");
    let mut spool = Spool::open(place.path()).expect("a spool");
    assert_eq!(spool.take_recovered(), [result(1)]);
    spool.append(&[result(3)]).expect("stored");
    drop(spool);
    let bytes = std::fs::read(place.path().join("results")).expect("a file");
    assert_eq!(Contents::read(&bytes).unreadable, 0);
    assert_eq!(read(&bytes), [result(1), result(3)]);
}

/// The bytes of these results' records.
fn records(results: &[JobResult]) -> Vec<u8> {
    results.iter().flat_map(record).collect()
}

#[test]
fn rewritten_it_holds_what_still_waits() {
    let place = TempDir::new().expect("a directory");
    let spool = Spool::open(place.path()).expect("a spool");
    spool.append(&results(10)).expect("stored");
    spool.rewrite(&results(10)[7..]).expect("rewritten");
    assert!(matches!(Spool::open(place.path()), Err(SpoolError::InUse(_))), "it is locked as before");
    spool.append(&[result(1)]).expect("stored");
    let file = place.path().join("results");
    let kept = [&results(10)[7..], &[result(1)]].concat();
    assert_eq!(std::fs::read(&file).expect("a file"), records(&kept), "and nothing else");
    assert_eq!(mode(&file), 0o600);
    assert!(!place.path().join("results.new").exists());
    drop(spool);
    assert_eq!(Spool::open(place.path()).expect("a spool").take_recovered(), kept);
}

#[test]
fn a_rewriting_that_is_cut_short_costs_nothing() {
    let (old, new) = (records(&results(6)), records(&results(6)[4..]));
    for end in 0..=new.len() {
        // A power cut while the new file was written, and one that tore the old one's tail as well.
        for (old, whole) in [(&old[..], 6), (&old[..old.len() - 1], 5)] {
            let place = TempDir::new().expect("a directory");
            std::fs::write(place.path().join("results"), old).expect("a file");
            std::fs::write(place.path().join("results.new"), &new[..end]).expect("a file");
            let mut spool = Spool::open(place.path()).expect("a spool");
            assert_eq!(spool.take_recovered(), results(6)[..whole], "cut at {end}");
            assert!(!place.path().join("results.new").exists(), "what was left over is gone");
            spool.append(&[result(9)]).expect("stored");
            drop(spool);
            let recovered = Spool::open(place.path()).expect("a spool").take_recovered();
            assert_eq!(recovered, [&results(6)[..whole], &[result(9)]].concat());
        }
    }
}

#[test]
fn a_rewriting_that_fails_changes_nothing() {
    let place = TempDir::new().expect("a directory");
    let spool = Spool::open(place.path()).expect("a spool");
    spool.append(&results(3)).expect("stored");
    let in_the_way = place.path().join("results.new");
    std::fs::create_dir(&in_the_way).expect("a directory");
    spool.rewrite(&results(3)[2..]).expect_err("a directory is in its place");
    spool.append(&[result(1)]).expect("stored");
    std::fs::remove_dir(&in_the_way).expect("removed");
    let all = [results(3), vec![result(1)]].concat();
    assert_eq!(std::fs::read(place.path().join("results")).expect("a file"), records(&all));
    spool.rewrite(&all[3..]).expect("rewritten");
    drop(spool);
    assert_eq!(Spool::open(place.path()).expect("a spool").take_recovered(), [result(1)]);
}

#[test]
fn zeros_that_a_power_cut_left_are_no_records() {
    let bytes = [record(&result(1)), vec![0; 200]].concat();
    let contents = Contents::read(&bytes);
    assert_eq!((contents.payloads.len(), contents.unreadable), (1, 200));
}

#[test]
fn unusable_places_are_refused() {
    let place = TempDir::new().expect("a directory");
    let file = place.path().join("file");
    std::fs::write(&file, "").expect("a file");
    let refused = Spool::open(&file.join("spool")).expect_err("no directory can be there").to_string();
    assert!(
        refused.contains("file/spool: Not a directory") && refused.ends_with("another --spool"),
        "{refused}"
    );

    let mut later = v1::JobResult::from(result(1));
    later.kernel = "Abacus 2".to_owned();
    let payload = later.encode_to_vec();
    let length = u32::try_from(payload.len()).expect("short").to_le_bytes();
    let bytes = [&length[..], &checksum(&length, &payload).to_le_bytes(), &payload].concat();
    std::fs::write(place.path().join("results"), &bytes).expect("a file");
    let refused = Spool::open(place.path()).expect_err("of a later version").to_string();
    assert!(refused.contains("kernel"), "{refused}");
    assert_eq!(std::fs::read(place.path().join("results")).expect("a file"), bytes, "left as it was");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    /// A burst of damage costs the records that it touches and no others.
    #[test]
    fn damage_costs_only_what_it_hit(
        count in 1_u64..20,
        place in any::<prop::sample::Index>(),
        damage in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        let results = results(count);
        let mut bytes = Vec::new();
        let mut spans = Vec::new();
        for result in &results {
            let begin = bytes.len();
            bytes.extend(record(result));
            spans.push(begin..bytes.len());
        }
        let begin = place.index(bytes.len());
        let original = bytes.clone();
        for (byte, damage) in bytes[begin..].iter_mut().zip(&damage) {
            *byte ^= damage;
        }
        let untouched = results.iter().zip(&spans).filter(|(_, span)| bytes[(*span).clone()] == original[(*span).clone()]);
        let untouched: Vec<_> = untouched.map(|(result, _)| result.clone()).collect();
        prop_assert_eq!(read(&bytes), untouched);
    }
}

#[test]
fn links_and_what_others_can_write_are_refused() {
    let place = TempDir::new().expect("a directory");
    let dir = place.path().join("spool");
    let elsewhere = place.path().join("elsewhere");
    std::fs::write(&elsewhere, "kept").expect("a file");
    let refused = |dir: &Path| Spool::open(dir).expect_err("it is not used").to_string();
    let remake = || {
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir(&dir).expect("a directory");
        set_mode(&dir, 0o700);
    };
    for name in ["lock", RESULTS] {
        remake();
        symlink(&elsewhere, dir.join(name)).expect("a link");
        assert!(refused(&dir).ends_with(&format!("{name}: it is a symbolic link; choose another --spool")));
        remake();
        std::fs::hard_link(&elsewhere, dir.join(name)).expect("a link");
        assert!(refused(&dir).contains(&format!("{name}: it has several names;")));
    }
    // What is to be replaced is removed first.
    remake();
    symlink(&elsewhere, dir.join(NEW)).expect("a link");
    let spool = Spool::open(&dir).expect("a spool");
    spool.write(&Write::Rewrite(results(2))).expect("written");
    symlink(&elsewhere, dir.join("rejected")).expect("a link");
    assert!(
        spool.write(&Write::Reject(results(1))).expect_err("a link").to_string().ends_with("symbolic link")
    );
    drop(spool);
    assert_eq!(std::fs::read_to_string(&elsewhere).expect("a file"), "kept");

    let link = place.path().join("link");
    symlink(&dir, &link).expect("a link");
    assert!(refused(&link).ends_with("link: it is a symbolic link; choose another --spool"));
    set_mode(&dir, 0o777);
    assert!(refused(&dir).contains("spool: all users can write it;"));
    set_mode(&dir, 0o700);
    set_mode(&dir.join(RESULTS), 0o666);
    assert!(refused(&dir).contains("results: all users can write it;"));
    remake();
    if chown(&dir, Some(65_534), None).is_err() {
        assert!(std::env::var_os("NO_SKIPS").is_none(), "only root can give files away");
        eprintln!("SKIPPED: only root can give files away");
        return;
    }
    assert!(refused(&dir).contains("spool: it belongs to user 65534, not to user "));
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("our own");
}
