//! TLS between coordinator, workers and operators.

use std::os::unix::fs::PermissionsExt;

use insta::assert_snapshot;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType};
use time::{Duration, OffsetDateTime};

use crate::http::{curl, is_here};
use crate::processes::{
    Background, Coordinator, OPERATOR_TOKEN, WORKER_TOKEN, ended, eventually, own_address,
};
use crate::{NO_DEVICES, Place};

const TOKENS: [(&str, &str); 3] = [
    ("NQUEENS_WORKER_TOKEN", WORKER_TOKEN),
    ("NQUEENS_TOKEN", WORKER_TOKEN),
    ("NQUEENS_OPERATOR_TOKEN", OPERATOR_TOKEN),
];

const TRUSTING: &str = "--tls-ca queens.db.pem";

/// A coordinator with a certificate of its own for the address that this test program's coordinators have.
fn encrypted(place: &Place, more: &[(&str, &str)]) -> Coordinator {
    let variables = [&TOKENS, more].concat();
    Coordinator::start(place, &variables, &format!("--tls --tls-host {} --sync-seconds 1", own_address()))
}

fn https(coordinator: &Coordinator) -> String {
    format!("https://{}", coordinator.address)
}

/// What an operator is told who is not let in.
fn refusal(place: &Place, coordinator: &Coordinator, options: &str) -> String {
    place.failure(&format!("status --coordinator {} --log error {options}", https(coordinator)))
}

/// Files `NAME.pem` and `NAME.key`: a certificate, signed by itself or by `issuer`, that is good unless `change` spoils it.
fn forge(
    place: &Place,
    name: &str,
    issuer: Option<&Issuer<'_, KeyPair>>,
    change: impl FnOnce(&mut CertificateParams),
) {
    let mut params = CertificateParams::default();
    params.not_before = OffsetDateTime::now_utc() - Duration::days(2);
    params.not_after = OffsetDateTime::now_utc() + Duration::days(2);
    params.subject_alt_names = vec![SanType::IpAddress(own_address().into())];
    change(&mut params);
    let key = KeyPair::generate().expect("a key");
    let certificate = match issuer {
        Some(issuer) => params.signed_by(&key, issuer),
        None => params.self_signed(&key),
    };
    std::fs::write(place.path(&format!("{name}.pem")), certificate.expect("signed").pem()).expect("written");
    std::fs::write(place.path(&format!("{name}.key")), key.serialize_pem()).expect("written");
    place.set_mode(&format!("{name}.key"), 0o600);
}

/// An authority, and its certificate in `NAME.pem`.
fn authority(place: &Place, name: &str) -> Issuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("signed");
    std::fs::write(place.path(&format!("{name}.pem")), certificate.pem()).expect("written");
    Issuer::new(params, key)
}

/// The certificate is made once; a join file carries it, and tokens travel under it.
#[test]
fn a_coordinator_makes_its_certificate_and_keys_are_never_logged() {
    let place = Place::new().with_file("worker.token", WORKER_TOKEN);
    let trace = [("NQUEENS_LOG", "trace")];
    let coordinator = encrypted(&place, &trace);
    let mode = |file: &str| place.path(file).metadata().expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode("queens.db.pem"), mode("queens.db.key")), (0o644, 0o600));
    let url = https(&coordinator);
    let at = format!("--coordinator {url} {TRUSTING}");
    place.stdout(&format!("join create {at} --worker-token-file worker.token --output join"));
    let printed = place.stdout(&format!("join create {at} --worker-token-file worker.token"));
    assert_eq!(printed, std::fs::read_to_string(place.path("join")).expect("text"));
    let submitted = place.run_with(&[trace[0], TOKENS[2]], &format!("submit 9 {at}"));
    assert_eq!(submitted.code, 0, "{}", submitted.stderr);
    let joining = "worker --join join --threads 1 --kernel scalar --spool";
    let mut honest = Background::start(place.command(&format!("{joining} west")).envs(trace));
    let done = eventually("the run is done", || {
        let doctor = place.run_with(&[TOKENS[2], NO_DEVICES], &format!("doctor {at}")).stdout;
        doctor.contains("N = 9, done").then_some(doctor)
    });
    assert!(done.contains("it accepts the operator token"), "{done}");
    honest.signal("-TERM");
    let worked = ended(&mut honest);
    assert_eq!(worked.code, 0, "{}", worked.stderr);

    let key = std::fs::read_to_string(place.path("queens.db.key")).expect("text");
    let secrets: Vec<_> = key.lines().filter(|line| !line.starts_with("-----")).collect();
    assert!(secrets.len() >= 2);
    let first = std::fs::read(place.path("queens.db.pem")).expect("a file");
    for log in [submitted.stderr, worked.stderr, coordinator.stop().stderr] {
        assert!(log.contains("DEBUG") && !log.contains("PRIVATE KEY") && !log.contains(OPERATOR_TOKEN));
        assert!(!secrets.iter().any(|secret| log.contains(secret)));
    }

    // Join files outlive a restart.
    let coordinator = encrypted(&place, &[]);
    assert_eq!(std::fs::read(place.path("queens.db.pem")).expect("a file"), first);
    assert_eq!(coordinator.stop().code, 0);
    let arguments = "coordinator --db queens.db --listen 127.0.0.1:0 --tls --tls-host head.example";
    let other = place.failure(&format!("{arguments} --log error"));
    assert!(
        other.starts_with("queens.db.pem is not for head.example; remove it and queens.db.key"),
        "{other}"
    );
    std::fs::remove_file(place.path("queens.db.key")).expect("it was there");
    let half = place.failure("coordinator --db queens.db --listen 127.0.0.1:0 --tls --log error");
    assert!(half.starts_with("queens.db.key: No such file"), "{half}");
}

#[test]
fn page_metrics_and_api_are_behind_tls_in_either_version_of_http() {
    if !is_here("curl") {
        return;
    }
    let place = Place::new();
    let coordinator = encrypted(&place, &[]);
    let url = https(&coordinator);
    for version in ["--http1.1", "--http2"] {
        let ask = |arguments: &str, path: &str| {
            curl(&place, &format!("{version} --cacert queens.db.pem {arguments} {url}{path}"))
        };
        for path in ["/metrics", "/v1/runs", "/solution?n=8&number=1"] {
            let outcome = ask(&format!("--oauth2-bearer {OPERATOR_TOKEN}"), path);
            assert_eq!(outcome.code, 0, "{version} {path}: {}", outcome.stderr);
            assert_eq!(ask("", path).code, 22, "{version} {path}");
            assert_ne!(ask(&format!("--oauth2-bearer {WORKER_TOKEN}"), path).code, 0, "{version} {path}");
        }
        assert_eq!(ask("", "/readyz").stdout, "ok");
        let entered = ask(&format!("--include --data token={OPERATOR_TOKEN}"), "/login").stdout;
        assert!(entered.contains("SameSite=Strict") && entered.contains("; Secure"), "{entered}");
        let plain = curl(&place, &format!("{version} {}/readyz", coordinator.url()));
        assert_ne!(plain.code, 0, "nothing is told without TLS");
    }
    place.stdout(&format!("doctor --ready --coordinator {url} {TRUSTING}"));
    assert_eq!(coordinator.stop().code, 0);
}

#[test]
fn a_coordinator_with_a_wrong_certificate_is_not_trusted_and_both_sides_say_why() {
    let place = Place::new();
    let [ours, others] = ["ours", "others"].map(|name| authority(&place, name));
    let now = OffsetDateTime::now_utc();
    let elsewhere = SanType::DnsName("elsewhere.example".try_into().expect("ASCII"));
    forge(&place, "good", Some(&ours), |_| {});
    forge(&place, "own", None, |_| {});
    forge(&place, "expired", Some(&ours), |params| params.not_after = now - Duration::days(1));
    forge(&place, "own-expired", None, |params| params.not_after = now - Duration::days(1));
    forge(&place, "early", Some(&ours), |params| params.not_before = now + Duration::days(1));
    forge(&place, "elsewhere", Some(&ours), |params| params.subject_alt_names = vec![elsewhere.clone()]);
    forge(&place, "own-elsewhere", None, |params| params.subject_alt_names = vec![elsewhere]);
    forge(&place, "foreign", Some(&others), |_| {});
    forge(&place, "again", None, |_| {});
    let start = |name: &str| {
        Coordinator::start(&place, &TOKENS[..0], &format!("--tls-cert {name}.pem --tls-key {name}.key"))
    };
    for (name, trusted) in [("good", "ours"), ("own", "own")] {
        let coordinator = start(name);
        place.stdout(&format!("status --coordinator {} --tls-ca {trusted}.pem", https(&coordinator)));
        assert_eq!(coordinator.stop().code, 0);
    }
    let expired = ("has expired; give it a new one", "CertificateExpired");
    let host = ("but for elsewhere.example; use one of these names in the address", "BadCertificate");
    let issuer = ("is neither in --tls-ca or the join file, nor from an authority that is", "");
    let cases = [
        ("expired", "ours", expired),
        ("own-expired", "own-expired", expired),
        ("early", "ours", ("is not valid yet; check the clocks of both machines", "CertificateExpired")),
        ("elsewhere", "ours", host),
        ("own-elsewhere", "own-elsewhere", host),
        ("foreign", "ours", issuer),
        ("good", "others", issuer),
        ("own", "again", issuer),
        ("own", "ours", issuer),
    ];
    for (name, trusted, (wrong, alert)) in cases {
        let coordinator = start(name);
        let options = format!("--tls-ca {trusted}.pem");
        let said = refusal(&place, &coordinator, &options);
        assert!(
            said.starts_with(&format!("no secure connection to https://{}: ", coordinator.address)),
            "{said}"
        );
        assert!(said.contains(wrong), "{name}: {said}");
        // A worker waits until that is mended.
        let arguments = coordinator.worker_arguments("https", "west", &format!("{name}-{trusted}"));
        let mut patient = Background::start(&mut place.command(&format!("{arguments} {options}")));
        eventually("the worker says so", || patient.said().contains(wrong).then_some(()));
        assert!(patient.is_running());
        let log = coordinator.stop().stderr;
        assert!(log.contains("refused: it rejects this coordinator's certificate"), "{log}");
        assert!(log.contains(alert), "{name}: {log}");
    }
}

#[test]
fn one_side_speaks_tls_and_the_other_does_not() {
    let place = Place::new();
    let coordinator = encrypted(&place, &[]);
    let plain = place.failure(&format!("status --coordinator {}", coordinator.url()));
    let hint = "check whether the address must begin with https://, and give the certificate by --tls-ca or a join file";
    assert!(plain.ends_with(hint), "{plain}");
    let worker = format!("worker --threads 1 --idle-timeout 1s --coordinator {}", coordinator.url());
    let worker = Background::start(&mut place.command(&worker));
    eventually("the worker says it, too", || worker.said().contains(hint).then_some(()));
    eventually("it is logged", || coordinator.process.said().contains("it does not use TLS").then_some(()));
    assert_eq!(coordinator.stop().code, 0);
    let coordinator = Coordinator::start(&place, &[], "");
    let said = refusal(&place, &coordinator, TRUSTING);
    assert!(said.contains("it does not use TLS; write http://"), "{said}");
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let place = Place::new();
    forge(&place, "own", None, |_| {});
    forge(&place, "other", None, |_| {});
    // Or there would be a warning, too, that others can read it.
    place.set_mode("own.pem", 0o600);
    let before = place.files();
    assert_snapshot!(place.session(
        "coordinator --db queens.db --tls-cert own.pem
        coordinator --db queens.db --tls-key own.key
        coordinator --db queens.db --tls --tls-cert own.pem --tls-key own.key
        coordinator --db queens.db --tls-host head
        coordinator --db queens.db --tls --tls-host https://head
        coordinator --db queens.db --tls-cert own.pem --tls-key other.key
        coordinator --db queens.db --tls-cert none.pem --tls-key own.key
        coordinator --db queens.db --tls-cert own.pem --tls-key own.pem
        status --coordinator https://head:1
        status --coordinator http://head:1 --tls-ca own.pem
        status --coordinator https://head:1 --tls-ca own.key"
    ));
    let open =
        place.run("coordinator --db queens.db --listen 0.0.0.0:0 --tls-cert own.pem --tls-key own.key");
    assert!(open.code == 2 && open.stderr.contains("can be reached from other machines"), "{}", open.stderr);
    assert!(place.files() == before, "nothing was begun");
}
