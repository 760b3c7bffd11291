//! TLS between coordinator, workers and operators, with certificates of `nqueens certs`.

use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, Issuer, KeyPair, SanType};
use time::{Duration, OffsetDateTime};

use crate::http::{curl, is_here};
use crate::processes::{Background, Coordinator, OPERATOR_TOKEN, WORKER_TOKEN, eventually, own_address};
use crate::{Outcome, Place};

/// A place with certificates for the address that this test program's coordinators have.
fn certified() -> Place {
    let place = Place::new();
    place.stdout(&format!("certs --dir c --host {}", own_address()));
    place
}

const TRUSTING: &str = "--tls-ca c/ca.pem";

fn showing(name: &str) -> String {
    format!("{TRUSTING} --tls-cert c/{name}.pem --tls-key c/{name}.key")
}

fn https(coordinator: &Coordinator) -> String {
    format!("https://{}", coordinator.address)
}

fn worker(place: &Place, coordinator: &Coordinator, options: &str, variables: &[(&str, &str)]) -> Background {
    let url = https(coordinator);
    // The spool is not to be another's.
    let spool = format!("spool-{}", options.len());
    let arguments =
        format!("worker --coordinator {url} --threads 1 --kernel scalar --spool {spool} {options}");
    Background::start(place.command(&arguments).envs(variables.iter().copied()))
}

/// What an operator is told who is not let in.
fn refusal(place: &Place, coordinator: &Coordinator, options: &str) -> String {
    place.failure(&format!("status --coordinator {} --log error {options}", https(coordinator)))
}

/// A certificate that `nqueens certs` would not make, from its authority: `NAME.pem` and `NAME.key`.
fn forge(place: &Place, name: &str, change: impl FnOnce(&mut CertificateParams)) {
    let [ca, ca_key] =
        ["c/ca.pem", "c/ca.key"].map(|file| std::fs::read_to_string(place.path(file)).expect("text"));
    let issuer = Issuer::from_ca_cert_pem(&ca, KeyPair::from_pem(&ca_key).expect("a key")).expect("a CA");
    let mut params = CertificateParams::default();
    params.not_before = OffsetDateTime::now_utc() - Duration::days(2);
    params.not_after = OffsetDateTime::now_utc() + Duration::days(2);
    params.subject_alt_names = vec![SanType::IpAddress(own_address().into())];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    change(&mut params);
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, &issuer).expect("signed");
    std::fs::write(place.path(&format!("c/{name}.pem")), certificate.pem()).expect("written");
    std::fs::write(place.path(&format!("c/{name}.key")), key.serialize_pem()).expect("written");
}

fn expired(params: &mut CertificateParams) {
    params.not_after = OffsetDateTime::now_utc() - Duration::days(1);
}

fn of_operator(params: &mut CertificateParams) {
    params.subject_alt_names = vec![SanType::URI("urn:nqueens:operator".try_into().expect("ASCII"))];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
}

/// The lines of all private keys.
fn secrets(place: &Place) -> Vec<String> {
    let keys = ["ca", "coordinator", "worker", "operator"].map(|name| place.path(&format!("c/{name}.key")));
    let lines = keys.into_iter().flat_map(|path| {
        let text = std::fs::read_to_string(path).expect("a key");
        text.lines().filter(|line| !line.starts_with("-----")).map(str::to_owned).collect::<Vec<_>>()
    });
    lines.collect()
}

#[test]
fn certificates_do_instead_of_tokens_and_keys_are_never_logged() {
    let place = certified();
    let trace = [("NQUEENS_LOG", "trace")];
    let coordinator = Coordinator::start(&place, &trace, &showing("coordinator"));
    let at = format!("--coordinator {}", https(&coordinator));
    let submitted = place.run_with(&trace, &format!("submit 9 {at} {}", showing("operator")));
    assert_eq!(submitted.code, 0, "{}", submitted.stderr);
    let mut honest = worker(&place, &coordinator, &showing("worker"), &trace);
    let run = submitted.stdout.trim_end();
    let watched = place.stdout(&format!("watch {run} --interval 0.2 {at} {}", showing("operator")));
    assert!(watched.ends_with("TOTAL 352, equal to the published count\n"), "{watched}");
    let doctor = place.run(&format!("doctor {at} {}", showing("operator")));
    assert!(doctor.stdout.contains("it accepts the operator certificate"), "{}", doctor.stdout);

    let denied = refusal(&place, &coordinator, &showing("worker"));
    assert!(denied.starts_with("the coordinator refused: this certificate is not for operators"), "{denied}");
    let mut operator = worker(&place, &coordinator, &showing("operator"), &[]);
    let outcome = operator.end();
    assert_eq!(outcome.code, 5);
    assert!(outcome.stderr.contains("this certificate is not for workers"), "{}", outcome.stderr);
    let nobody = refusal(&place, &coordinator, TRUSTING);
    assert!(nobody.ends_with("requires a certificate; give --tls-cert and --tls-key"), "{nobody}");
    let with_token = [("NQUEENS_OPERATOR_TOKEN", OPERATOR_TOKEN)];
    assert_eq!(
        place.run_with(&with_token, &format!("status {at} {TRUSTING}")).code,
        1,
        "there are no tokens"
    );

    honest.signal("-TERM");
    let logs = [submitted.stderr, honest.end().stderr, coordinator.stop().stderr];
    assert!(logs[2].contains("refused: it has no certificate"), "{}", logs[2]);
    let secrets = secrets(&place);
    assert!(secrets.len() >= 4);
    for log in logs {
        assert!(log.contains("TRACE") && !log.contains("PRIVATE KEY"));
        assert!(!secrets.iter().any(|secret| log.contains(secret)));
    }
}

#[test]
fn tokens_travel_encrypted_and_certificates_do_as_well() {
    let place = certified();
    let tokens = [("NQUEENS_WORKER_TOKEN", WORKER_TOKEN), ("NQUEENS_OPERATOR_TOKEN", OPERATOR_TOKEN)];
    for ca in ["", TRUSTING] {
        let own = format!("--tls-cert c/coordinator.pem --tls-key c/coordinator.key {ca}");
        let coordinator = Coordinator::start(&place, &tokens, &own);
        let status = |variables: &[(&str, &str)], options: &str| {
            place.run_with(variables, &format!("status --coordinator {} {options}", https(&coordinator)))
        };
        assert_eq!(status(&tokens, TRUSTING).code, 0);
        let without = status(&[], TRUSTING);
        assert_eq!(without.code, 1);
        assert!(without.stderr.contains("the operator's token is missing or wrong"), "{}", without.stderr);
        let certificate = status(&[], &showing("operator"));
        assert_eq!(certificate.code == 0, !ca.is_empty(), "{}", certificate.stderr);
        assert_eq!(coordinator.stop().code, 0);
    }
}

#[test]
fn page_metrics_and_api_are_behind_tls_in_either_version_of_http() {
    if !is_here("curl") {
        return;
    }
    let place = certified();
    let tokens = [("NQUEENS_WORKER_TOKEN", WORKER_TOKEN), ("NQUEENS_OPERATOR_TOKEN", OPERATOR_TOKEN)];
    let own = "--tls-cert c/coordinator.pem --tls-key c/coordinator.key";
    let coordinator = Coordinator::start(&place, &tokens, own);
    let url = https(&coordinator);
    for version in ["--http1.1", "--http2"] {
        let ask = |arguments: &str, path: &str| {
            curl(&place, &format!("{version} --cacert c/ca.pem {arguments} {url}{path}"))
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
    let place = certified();
    place.stdout("certs --dir other");
    forge(&place, "expired", expired);
    forge(&place, "early", |params| params.not_before = OffsetDateTime::now_utc() + Duration::days(1));
    let elsewhere = SanType::DnsName("elsewhere.example".try_into().expect("ASCII"));
    forge(&place, "elsewhere", |params| params.subject_alt_names = vec![elsewhere]);
    let cases = [
        (
            "expired",
            TRUSTING,
            "the coordinator's certificate has expired; make a new one",
            "CertificateExpired",
        ),
        ("early", TRUSTING, "is not valid yet; check the clocks of both machines", "CertificateExpired"),
        (
            "elsewhere",
            TRUSTING,
            "but for elsewhere.example; use one of these names in the address",
            "BadCertificate",
        ),
        ("operator", TRUSTING, "is not for coordinators; start it with coordinator.pem", ""),
        (
            "coordinator",
            "--tls-ca other/ca.pem",
            "comes from another authority than those in --tls-ca",
            "UnknownCA",
        ),
    ];
    for (name, trusting, wrong, alert) in cases {
        let coordinator = Coordinator::start(&place, &[], &showing(name));
        let options = format!("{trusting} --tls-cert c/worker.pem --tls-key c/worker.key");
        let said = refusal(&place, &coordinator, &options);
        assert!(
            said.starts_with(&format!("no secure connection to https://{}: ", coordinator.address)),
            "{said}"
        );
        assert!(said.contains(wrong), "{name}: {said}");
        // A worker waits until that is mended.
        let mut patient = worker(&place, &coordinator, &options, &[]);
        eventually("the worker says so", || patient.said().contains(wrong).then_some(()));
        assert!(patient.is_running());
        let log = coordinator.stop().stderr;
        assert!(log.contains("refused: it rejects this coordinator's certificate"), "{log}");
        assert!(log.contains(alert), "{name}: {log}");
    }
}

#[test]
fn a_caller_with_a_wrong_certificate_is_not_let_in_and_both_sides_say_why() {
    let place = certified();
    place.stdout("certs --dir other");
    forge(&place, "expired", |params| {
        of_operator(params);
        expired(params);
    });
    forge(&place, "nobody", |params| {
        of_operator(params);
        params.subject_alt_names = vec![SanType::URI("urn:nqueens:somebody".try_into().expect("ASCII"))];
    });
    let coordinator = Coordinator::start(&place, &[], &showing("coordinator"));
    let other = format!("{TRUSTING} --tls-cert other/operator.pem --tls-key other/operator.key");
    let cases = [
        (showing("expired"), "the certificate in --tls-cert has expired", "its certificate has expired"),
        (other, "does not trust the authority of the certificate in --tls-cert", "from another authority"),
        (showing("coordinator"), "rejects the certificate in --tls-cert", "no role for workers or operators"),
    ];
    for (options, told, logged) in cases {
        let said = refusal(&place, &coordinator, &options);
        assert!(said.contains(told), "{said}");
        eventually("it is logged", || coordinator.process.said().contains(logged).then_some(()));
    }
    let said = refusal(&place, &coordinator, &showing("nobody"));
    assert!(said.contains("this certificate is not for operators"), "{said}");

    // One side speaks TLS, the other does not.
    let plain = place.failure(&format!("status --coordinator {}", coordinator.url()));
    assert!(plain.contains("whether the address must begin with https://"), "{plain}");
    eventually("it is logged", || coordinator.process.said().contains("it does not use TLS").then_some(()));
    assert_eq!(coordinator.stop().code, 0);
    let coordinator = Coordinator::start(&place, &[], "");
    let said = refusal(&place, &coordinator, TRUSTING);
    assert!(said.contains("it does not use TLS; write http://"), "{said}");
}

#[test]
fn an_authority_is_replaced_while_both_are_trusted() {
    let place = certified();
    let read = |file: &str| std::fs::read_to_string(place.path(file)).expect("text");
    let keep = |from: &str, to: &str| {
        std::fs::copy(place.path(from), place.path(to)).expect("copied");
    };
    std::fs::create_dir(place.path("old")).expect("a directory");
    for file in ["ca.pem", "coordinator.pem", "coordinator.key", "operator.pem", "operator.key"] {
        keep(&format!("c/{file}"), &format!("old/{file}"));
    }
    let old = "--tls-cert old/operator.pem --tls-key old/operator.key";

    let early = place.failure("certs retire-ca --dir other");
    assert!(early.contains("other/ca.pem"), "{early}");
    let said = place.stdout("certs new-ca --dir c");
    assert!(said.contains("and the old one"), "{said}");
    assert_eq!(read("c/ca.pem").matches("BEGIN CERTIFICATE").count(), 2);
    assert!(read("c/ca.pem").ends_with(&read("old/ca.pem")));
    let early = place.failure("certs retire-ca --dir c");
    assert!(
        early.starts_with("coordinator.pem was signed by the old authority; run 'nqueens certs renew' first"),
        "{early}"
    );
    let certificates = place.stdout("certs renew --dir c");
    assert!(
        certificates.contains(&format!("coordinator {}", own_address())),
        "the names are kept: {certificates}"
    );

    // Old and new certificates meet, as long as both sides have both authorities.
    for own in ["old/coordinator", "c/coordinator"] {
        let own = format!("--tls-cert {own}.pem --tls-key {own}.key {TRUSTING}");
        let coordinator = Coordinator::start(&place, &[], &own);
        for caller in [&format!("{TRUSTING} {old}"), &showing("operator")] {
            place.stdout(&format!("status --coordinator {} {caller}", https(&coordinator)));
        }
        assert_eq!(coordinator.stop().code, 0);
    }
    place.stdout("certs retire-ca --dir c");
    assert_eq!(read("c/ca.pem").matches("BEGIN CERTIFICATE").count(), 1);
    let coordinator = Coordinator::start(&place, &[], &showing("coordinator"));
    let said = refusal(&place, &coordinator, &format!("{TRUSTING} {old}"));
    assert!(said.contains("does not trust the authority"), "{said}");
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let place = certified();
    let everywhere = "coordinator --db queens.db --listen 0.0.0.0:0";
    let own = "--tls-cert c/coordinator.pem --tls-key c/coordinator.key";
    let misuse = [
        (format!("{everywhere} {own}"), "can be reached from other machines"),
        (format!("{everywhere} {TRUSTING}"), "--tls-ca requires --tls-cert and --tls-key"),
        (
            format!("{everywhere} --tls-cert c/coordinator.pem"),
            "--tls-cert and --tls-key must be given together",
        ),
        ("status --coordinator https://head:1".to_owned(), "https:// wants --tls-ca"),
        (
            format!("status --coordinator http://head:1 {TRUSTING}"),
            "there is --tls-ca, and http:// goes without TLS",
        ),
        (format!("status {own}"), "--tls-cert requires --tls-ca"),
        ("certs --host https://head".to_owned(), "a host is a name or an address"),
        ("certs --worker ca".to_owned(), "is not 'ca' or 'coordinator'"),
        ("certs --worker one,one".to_owned(), "'one' is given twice"),
    ];
    for (arguments, why) in misuse {
        let Outcome { code, stderr, .. } = place.run(&arguments);
        assert!(code == 2 && stderr.contains(why), "{arguments}: {code}, {stderr}");
    }
    let failures = [
        (
            format!("{everywhere} {TRUSTING} --tls-cert c/coordinator.pem --tls-key c/worker.key"),
            "the key does not belong to this certificate",
        ),
        (
            format!("{everywhere} {TRUSTING} --tls-cert c/none.pem --tls-key c/worker.key"),
            "c/none.pem: No such file",
        ),
        (
            "status --coordinator https://head:1 --tls-ca c/ca.key".to_owned(),
            "c/ca.key: it contains no certificate",
        ),
        (
            format!(
                "status --coordinator https://head:1 {TRUSTING} --tls-cert c/worker.pem --tls-key c/worker.pem"
            ),
            "c/worker.pem: it contains no private key",
        ),
    ];
    for (arguments, why) in failures {
        let said = place.failure(&arguments);
        assert!(said.contains(why), "{arguments}: {said}");
    }
    assert!(!place.path("queens.db").exists(), "nothing was begun");
}
