//! Who else can read what the program writes, and whom it believes.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::Path;
use std::process::Command;

use crate::http::skip;
use crate::processes::{
    Background, Coordinator, OPERATOR_TOKEN, WORKER_TOKEN, end_well, eventually, own_address,
};
use crate::{NQUEENS, Outcome, Place};

/// `nqueens` with blank-separated arguments, under a umask of this process alone.
fn under(umask: &str, place: &Place, arguments: &str) -> Command {
    let mut command = place.program("sh");
    command.args(["-c", "umask \"$1\" && shift && exec \"$0\" \"$@\"", NQUEENS, umask]);
    command.args(arguments.split_whitespace());
    command
}

fn succeed(command: &mut Command) -> String {
    let outcome = Outcome::of(command);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    outcome.stdout
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap_or_else(|error| panic!("{}: {error}", path.display())).permissions().mode() & 0o777
}

/// Whatever lies in a folder can be read by its owner alone.
fn assert_private(folder: &Path) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            assert_eq!(mode(&path), 0o700, "{}", path.display());
            assert_private(&path);
        } else {
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }
}

#[test]
fn results_are_their_owner_s_whatever_the_umask() {
    for umask in ["000", "077"] {
        let place = Place::new();
        let arguments = "coordinator --db queens.db --listen 127.0.0.1:0 --sync-seconds 1";
        let coordinator = Coordinator::of(&mut under(umask, &place, arguments));
        let at = format!("--coordinator {}", coordinator.url());
        let run = coordinator.submit(&place, "12 --plan border --job-states 300");
        let worker = coordinator.worker_arguments("http", "west", "deep/spool");
        let worker = Background::start(&mut under(umask, &place, &worker));
        eventually("results have been spooled", || place.path("deep/spool/results").exists().then_some(()));
        succeed(&mut under(umask, &place, "backup --db queens.db copy.db"));
        for file in ["", "-wal", "-shm"] {
            assert_eq!(mode(&place.path(&format!("queens.db{file}"))), 0o600, "umask {umask}: {file}");
        }
        place.run(&format!("watch {run} --interval 0.2 --plain {at}"));
        end_well(worker);
        succeed(&mut under(umask, &place, "report --db queens.db --html --output report.html"));
        succeed(&mut under(umask, &place, "run 6 --db six.db"));
        assert_eq!(coordinator.stop().code, 0);
        for file in ["copy.db", "report.html", "six.db", "deep/spool/lock"] {
            assert!(place.path(file).exists(), "{file}");
        }
        assert_private(&place.path(""));
    }
}

#[test]
fn a_file_that_was_opened_to_others_stays_open_to_them() {
    let place = Place::new();
    place.stdout("run 6 --db queens.db");
    place.set_mode("queens.db", 0o640);
    let arguments = "coordinator --db queens.db --listen 127.0.0.1:0";
    let coordinator = Coordinator::of(&mut under("077", &place, arguments));
    for file in ["queens.db", "queens.db-wal", "queens.db-shm"] {
        assert_eq!(mode(&place.path(file)), 0o640, "{file}");
    }
    assert_eq!(coordinator.stop().code, 0);
    let place = place.with_file("report.html", "");
    place.set_mode("report.html", 0o644);
    succeed(&mut under("077", &place, "report --db queens.db --html --output report.html --force"));
    assert_eq!(mode(&place.path("report.html")), 0o644);
    // Only a secret never does.
    let place = place.with_file("cluster.join", "");
    place.set_mode("cluster.join", 0o644);
    let create = "join create --coordinator http://127.0.0.1:1 --output cluster.join --force";
    succeed(&mut under("000", &place, create));
    assert_eq!(mode(&place.path("cluster.join")), 0o600);
}

#[test]
fn a_join_file_that_others_can_write_is_refused() {
    let place = Place::new();
    place.stdout("join create --coordinator http://127.0.0.1:1 --output join");
    let refusal = |place: &Place| place.failure("worker --join join");
    for mode in [0o620, 0o602] {
        place.set_mode("join", mode);
        let expected = "the join file join: it is not used: other users can write it; run 'chmod go-w join'";
        assert_eq!(refusal(&place), expected, "{mode:o}");
    }
    let own = place.path("").metadata().expect("a folder").uid();
    if chown(place.path("join"), Some(65_534), None).is_err() {
        return skip("the right to give files away, which root has");
    }
    let expected = format!(
        "the join file join: it is not used: it belongs to user 65534, neither to root nor to you; \
         run 'chown {own} join'"
    );
    assert_eq!(refusal(&place), expected);
}

#[test]
fn secrets_that_others_can_read_are_warned_of() {
    let place =
        Place::new().with_file("operator.token", OPERATOR_TOKEN).with_file("worker.token", WORKER_TOKEN);
    // The group may read those of root.
    let is_root = place.path("").metadata().expect("a folder").uid() == 0;
    let remedy = if is_root { "o=" } else { "go=" };
    let tokens = "--worker-token-file worker.token --operator-token-file operator.token";
    let options = format!("--tls --tls-host {} {tokens}", own_address());
    let secrets = ["operator.token", "worker.token", "queens.db.key"];
    // The secrets that coordinator and operator warn of.
    let warned = || {
        let coordinator = Coordinator::start(&place, &[], &options);
        let at = format!("--coordinator https://{} --tls-ca queens.db.pem", coordinator.address);
        let outcome = place.run(&format!("status {at} --operator-token-file operator.token"));
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        [coordinator.stop().stderr, outcome.stderr].map(|said| {
            let warning = |file: &str| {
                format!("other users can read the secret in {file}; run 'chmod {remedy} {file}'")
            };
            secrets.into_iter().filter(|file| said.contains(&warning(file))).collect::<Vec<_>>()
        })
    };
    assert_eq!(warned(), [[""; 0]; 2]);
    for file in secrets {
        place.set_mode(file, 0o604);
    }
    assert_eq!(warned(), [secrets.to_vec(), secrets[..1].to_vec()]);
    // As advised.
    succeed(place.program("chmod").arg(remedy).args(secrets));
    assert_eq!(warned(), [[""; 0]; 2]);
}

#[test]
fn what_others_can_write_is_not_used() {
    let place = Place::new().with_file("token", OPERATOR_TOKEN);
    place.stdout("run 6 --db queens.db");
    place.set_mode("queens.db", 0o666);
    let expected = "the database queens.db is not used: all users can write it; run 'chmod o-w queens.db'";
    assert_eq!(place.failure("run 6 --db queens.db"), expected);
    place.set_mode("queens.db", 0o600);
    let status = "status --coordinator http://127.0.0.1:1 --operator-token-file";
    place.set_mode("token", 0o620);
    let expected = "the token file token: it is not used: other users can write it; run 'chmod go-w token'";
    assert_eq!(place.failure(&format!("{status} token")), expected);
    place.set_mode("token", 0o600);

    for (file, link) in [("queens.db", "link.db"), ("token", "link")] {
        symlink(file, place.path(link)).expect("a link");
    }
    place.stdout("status --db link.db");
    if ["link.db", "link"].iter().any(|link| lchown(place.path(link), Some(65_534), None).is_err()) {
        return skip("the right to give links away, which root has");
    }
    for command in ["run 6", "status", "export"] {
        let expected = "the database link.db is not used: it is a link of another account";
        assert_eq!(place.failure(&format!("{command} --db link.db")), expected);
    }
    let expected = "the token file link: it is not used: it is a link of another account";
    assert_eq!(place.failure(&format!("{status} link")), expected);
}
