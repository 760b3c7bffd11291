//! `nqueens export --sign` and `nqueens verify --signer`, alone and together with `ssh-keygen`.

use ssh_key::private::Ed25519Keypair;
use ssh_key::{HashAlg, LineEnding, PrivateKey};

use crate::http::is_here;
use crate::{Outcome, Place};

/// A key with the passphrase "secret".
const ENCRYPTED: &str = "\
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABDifSANfb
H0rqTfAWJR+B+AAAAAAQAAAAEAAAAzAAAAC3NzaC1lZDI1NTE5AAAAIFg6BH2efcsKqtxk
icm1lqPM8b8jCz3kn1RVNJc1/e6yAAAAkECOdR/iOCtZ2SqVVrLOB5O5z3X59s1ZbtE983
SAeN2u8DZtoihY/3L2RmYyPCzvHjd5OXDnyHApg1Pgn0OKcDDIXAEiTittU7PycxjKQ/vC
FsCuRWObDfFIXovfwc98NDoqSYypxQYEhTYyivvrHQkEmLEfCpWrLUYLrYx+w4NPpT5YWh
btpfHTXqE+KoVPNQ==
-----END OPENSSH PRIVATE KEY-----
";

/// A key of a type that is not supported.
const ECDSA: &str = "\
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAaAAAABNlY2RzYS
1zaGEyLW5pc3RwMjU2AAAACG5pc3RwMjU2AAAAQQSK3HW5TP1hmV7w/Rd2wQrkdN9eNCTP
8aW6v4o7uH9zaf7fsVwoxUiLMCtexNVUuujeynneYDBXIATJmBi07Q5JAAAAoB2ywhMdss
ITAAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBIrcdblM/WGZXvD9
F3bBCuR03140JM/xpbq/iju4f3Np/t+xXCjFSIswK17E1VS66N7Ked5gMFcgBMmYGLTtDk
kAAAAhAJAlr2WUU8i8ZqUWMj1ElKY58QlTrQDOdUiLODP1DedDAAAAB21lQGhvbWU=
-----END OPENSSH PRIVATE KEY-----
";

fn key(seed: u8) -> PrivateKey {
    PrivateKey::new(Ed25519Keypair::from_seed(&[seed; 32]).into(), "me@home").expect("a key")
}

fn public(key: &PrivateKey) -> String {
    key.public_key().to_openssh().expect("text")
}

/// A finished run, our key and another one.
fn place() -> Place {
    let place = Place::new();
    place.stdout("run 6 --db run.db --threads 1");
    let secret = |seed| key(seed).to_openssh(LineEnding::LF).expect("text");
    place
        .with_file("key", &secret(1))
        .with_file("key.pub", &public(&key(1)))
        .with_file("other", &secret(2))
        .with_file("other.pub", &public(&key(2)))
}

/// What `verify` says of the signature; all other checks pass.
fn verdict(place: &Place, options: &str) -> (i32, String) {
    let outcome = place.run(&format!("verify ledger {options}"));
    assert_eq!(outcome.stderr, "");
    let (of_signature, others): (Vec<_>, Vec<_>) =
        outcome.stdout.lines().partition(|line| line[8..].starts_with("signature "));
    assert!(others.iter().all(|line| !line.starts_with("FAILED")), "{}", outcome.stdout);
    (outcome.code, of_signature.concat())
}

fn failed(why: impl std::fmt::Display) -> (i32, String) {
    (1, format!("FAILED  signature    {why}"))
}

fn passed(key: &PrivateKey) -> (i32, String) {
    let fingerprint = key.fingerprint(HashAlg::Sha256);
    (0, format!("ok      signature    the file is signed by {fingerprint} me@home"))
}

#[test]
fn a_ledger_passes_under_its_signer_s_key_alone() {
    let place = place();
    let signed = place.run("export --db run.db --format ledger --sign key --output ledger");
    assert_eq!((signed.code, &*signed.stdout), (0, ""), "{}", signed.stderr);
    let key_line = format!("nqueens: signed in ledger.sig; publish the key, too: {}", public(&key(1)));
    assert_eq!(signed.stderr.lines().nth(1), Some(&*key_line));
    assert_eq!(place.run("export --db run.db --format ledger").stdout.into_bytes(), place.files()["ledger"]);

    assert_eq!(verdict(&place, "--signer key.pub"), passed(&key(1)));
    assert_eq!(verdict(&place, ""), (0, String::new()), "nobody asked");
    let fingerprint = key(1).fingerprint(HashAlg::Sha256);
    assert_eq!(
        verdict(&place, "--signer other.pub"),
        failed(format!("the file is signed by another key: {fingerprint}"))
    );
    let place = place.with_file("both", &format!("# ours\n{}\n\n{}\n", public(&key(2)), public(&key(1))));
    assert_eq!(verdict(&place, "--signer both"), passed(&key(1)));
}

#[test]
fn what_was_changed_after_it_was_signed_does_not_pass() {
    let place = place();
    let signed = place.run("export --db run.db --format ledger --sign key --output ledger");
    assert_eq!(signed.code, 0, "{}", signed.stderr);
    let ledger = String::from_utf8(place.files()["ledger"].clone()).expect("text");
    let signature = String::from_utf8(place.files()["ledger.sig"].clone()).expect("text");
    let changed = "the file was changed after it was signed, or the signature was";

    // Another run with a chain of its own: every check passes but this one.
    let other = Place::new();
    other.stdout("run 6 --db run.db --threads 1");
    let other = other.run("export --db run.db --format ledger").stdout;
    let place = place.with_file("ledger", &other);
    assert_eq!(verdict(&place, "--signer key.pub"), failed(changed));
    // A file that ends early, or does not end.
    for text in [&ledger[..ledger.len() - 100], &format!("{ledger}{{}}\n")] {
        let place = Place::new().with_file("ledger", text).with_file("ledger.sig", &signature);
        let place = place.with_file("key.pub", &public(&key(1)));
        let outcome = place.run("verify ledger --signer key.pub");
        assert_eq!(outcome.code, 1);
        assert!(outcome.stdout.ends_with(&format!("FAILED  signature    {changed}\n")), "{}", outcome.stdout);
    }

    let place = place.with_file("ledger", &ledger);
    let for_files = key(1).sign("file", HashAlg::Sha512, ledger.as_bytes()).expect("signed");
    let place = place.with_file("ledger.sig", &for_files.to_pem(LineEnding::LF).expect("text"));
    let why = "the signature is for 'file', not for 'nqueens-ledger'";
    assert_eq!(verdict(&place, "--signer key.pub"), failed(why));
    let place = place.with_file("ledger.sig", "signed, me\n");
    let (code, why) = verdict(&place, "--signer key.pub");
    assert!(code == 1 && why.contains("not a signature in OpenSSH's format"), "{why}");
    std::fs::remove_file(place.path("ledger.sig")).expect("our file");
    let why = "there is no signature: ledger.sig: No such file or directory (os error 2)";
    assert_eq!(verdict(&place, "--signer key.pub"), failed(why));
}

#[test]
fn keys_that_can_t_sign_are_refused_before_anything_is_written() {
    let place = place().with_file("encrypted", ENCRYPTED).with_file("ecdsa", ECDSA);
    let refused = |key: &str| {
        place.failure(&format!("export --db run.db --format ledger --sign {key} --output ledger"))
    };
    assert_eq!(
        refused("encrypted"),
        "encrypted: the key has a passphrase; sign the exported file with 'ssh-keygen -Y sign -n nqueens-ledger -f KEY FILE'"
    );
    assert_eq!(refused("ecdsa"), "ecdsa: not an Ed25519 key in OpenSSH's format: unknown algorithm");
    assert!(refused("key.pub").starts_with("key.pub: not an Ed25519 key in OpenSSH's format: "));
    assert_eq!(refused("none"), "none: No such file or directory (os error 2)");
    for (options, why) in [
        ("--format ledger --sign key", "--output <FILE>"),
        ("--sign key --output ledger", "only ledgers can be signed; add --format ledger"),
    ] {
        let outcome = place.run(&format!("export --db run.db {options}"));
        assert!(outcome.code == 2 && outcome.stderr.contains(why), "{}", outcome.stderr);
    }
    place.sql("run.db", "UPDATE run SET state = 'paused', count2 = NULL, count4 = NULL, count8 = NULL, total = NULL, checked = NULL");
    assert!(refused("key").ends_with("only runs that are done can be exported as ledgers"));
    assert!(!place.path("ledger").exists() && !place.path("ledger.sig").exists());
}

#[test]
fn a_file_that_exists_is_replaced_by_force_only() {
    let place = place().with_file("ledger.sig", "precious");
    let export = "export --db run.db --format ledger --sign key --output ledger";
    let why = "ledger.sig exists already; choose another name, or give --force to replace it";
    assert_eq!(place.failure(export), why);
    assert!(!place.path("ledger").exists());
    assert_eq!(place.run(&format!("{export} --force")).code, 0);
    assert_eq!(verdict(&place, "--signer key.pub"), passed(&key(1)));
    let place = place.with_file("table.csv", "precious");
    let why = "table.csv exists already; choose another name, or give --force to replace it";
    assert_eq!(place.failure("export --db run.db --output table.csv"), why);
    assert_eq!(place.stdout("export --db run.db --output table.csv --force"), "");
    assert_eq!(place.files()["table.csv"], place.stdout("export --db run.db").into_bytes());
}

/// `ssh-keygen` there, with blank-separated arguments, and a file as its input.
fn ssh_keygen(place: &Place, arguments: &str, input: &str) -> Outcome {
    let input = std::fs::File::open(place.path(input)).expect("a file");
    Outcome::of(place.program("ssh-keygen").args(arguments.split_whitespace()).stdin(input))
}

#[test]
fn ssh_keygen_accepts_our_signatures() {
    if !is_here("ssh") {
        return;
    }
    let place = place().with_file("allowed", &format!("me@home {}\n", public(&key(1))));
    assert_eq!(place.run("export --db run.db --format ledger --sign key --output ledger").code, 0);
    let verify = |namespace: &str| {
        let arguments = format!("-Y verify -f allowed -I me@home -n {namespace} -s ledger.sig");
        ssh_keygen(&place, &arguments, "ledger").code
    };
    assert_eq!(verify("nqueens-ledger"), 0);
    assert_ne!(verify("file"), 0);
    let mut bytes = place.files()["ledger"].clone();
    bytes[100] ^= 1;
    std::fs::write(place.path("ledger"), bytes).expect("writable");
    assert_ne!(verify("nqueens-ledger"), 0);
}

#[test]
fn signatures_of_ssh_keygen_pass() {
    if !is_here("ssh") {
        return;
    }
    let place = place();
    assert_eq!(place.run("export --db run.db --format ledger --output ledger").code, 0);
    let made = ssh_keygen(&place, "-q -t ed25519 -N secret -C me@home -f theirs", "ledger");
    assert_eq!(made.code, 0, "{}", made.stderr);
    let mut sign = place.program("ssh-keygen");
    // The passphrase comes from a program, as without a terminal.
    let place_of_secret = place.path("ask");
    std::fs::write(&place_of_secret, "#!/bin/sh\necho secret\n").expect("writable");
    place.set_mode("ask", 0o700);
    sign.env("SSH_ASKPASS", &place_of_secret).env("SSH_ASKPASS_REQUIRE", "force");
    let signed = Outcome::of(sign.args(["-Y", "sign", "-n", "nqueens-ledger", "-f", "theirs", "ledger"]));
    assert_eq!(signed.code, 0, "{}", signed.stderr);
    let (code, said) = verdict(&place, "--signer theirs.pub");
    assert!(code == 0 && said.starts_with("ok      signature    the file is signed by SHA256:"), "{said}");
    assert_eq!(verdict(&place, "--signer key.pub").0, 1);
}

#[test]
fn a_signature_over_a_bundle_is_over_all_its_files() {
    let place = place();
    place.stdout("bundle --db run.db --output b.tar");
    let archive = std::fs::read(place.path("b.tar")).expect("the archive");
    let signature = key(1).sign("nqueens-ledger", HashAlg::Sha512, &archive).expect("signed");
    let place = place.with_file("b.tar.sig", &signature.to_pem(LineEnding::LF).expect("text"));
    let outcome = place.run("verify b.tar --signer key.pub");
    assert_eq!((outcome.code, &*outcome.stderr), (0, ""), "{}", outcome.stdout);
    assert!(outcome.stdout.contains(&passed(&key(1)).1), "{}", outcome.stdout);
    // Another letter in the report, which is no evidence.
    let at = archive.windows(4).position(|bytes| bytes == b"<h1>").expect("a title") + 4;
    let mut changed = archive;
    changed[at] ^= 1;
    std::fs::write(place.path("b.tar"), changed).expect("written");
    assert_eq!(place.run("verify b.tar").code, 0);
    let outcome = place.run("verify b.tar --signer key.pub");
    assert_eq!(outcome.code, 1, "{}", outcome.stdout);
    assert!(outcome.stdout.contains("FAILED  signature "), "{}", outcome.stdout);
}
