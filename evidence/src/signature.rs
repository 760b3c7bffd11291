//! Signatures over a ledger in the format of OpenSSH (`PROTOCOL.sshsig`): `ssh-keygen -Y` makes and checks them, too.
//!
//! What is signed is the whole file, as `ssh-keygen -Y sign` signs one. So keys that this program does not read (on a token,
//! in an agent, under a passphrase) can sign a ledger as well.

use std::io::{self, Read, Write};

use sha2::{Digest, Sha512};
use signature::{Signer, Verifier};
use ssh_key::{Algorithm, HashAlg, LineEnding, PrivateKey, PublicKey, SshSig};

use crate::finding::CheckResult;

/// What such a signature is for: one that was made for something else does not pass.
pub const NAMESPACE: &str = "nqueens-ledger";

/// SHA-512 of a file.
pub type FileHash = [u8; 64];

/// A file that is hashed as it is read or written.
#[derive(Debug)]
pub struct Hashed<T> {
    file: T,
    hash: Sha512,
}

impl<T> Hashed<T> {
    /// Nothing is read or written yet.
    pub fn new(file: T) -> Self {
        Self { file, hash: Sha512::new() }
    }

    /// The hash of all that was read or written, and the file.
    pub fn finish(self) -> (FileHash, T) {
        (self.hash.finalize().into(), self.file)
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.hash.update(&buffer[..read]);
        Ok(read)
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Why a key can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusableKey {
    /// It is no key.
    #[error("not an Ed25519 key in OpenSSH's format: {0}")]
    Unreadable(ssh_key::Error),
    /// It is encrypted.
    #[error(
        "the key has a passphrase; sign the exported file with 'ssh-keygen -Y sign -n {NAMESPACE} -f KEY FILE'"
    )]
    Encrypted,
    /// It is of another kind.
    #[error("it is a key of type {0}; only Ed25519 keys are supported")]
    Unsupported(Algorithm),
    /// A list without keys.
    #[error("there is no public key in it")]
    None,
}

/// A key that signs.
#[derive(Clone, Debug)]
pub struct SigningKey(PrivateKey);

impl SigningKey {
    /// Reads an Ed25519 key as `ssh-keygen` writes it.
    pub fn parse(text: &str) -> Result<Self, UnusableKey> {
        let key = PrivateKey::from_openssh(text).map_err(UnusableKey::Unreadable)?;
        if key.algorithm() != Algorithm::Ed25519 {
            return Err(UnusableKey::Unsupported(key.algorithm()));
        }
        if key.is_encrypted() { Err(UnusableKey::Encrypted) } else { Ok(Self(key)) }
    }

    /// Signs a file by its hash; returns the text of the signature's file.
    pub fn sign(&self, file: FileHash) -> Result<String, ssh_key::Error> {
        let signature = self.0.try_sign(&signed_data(file)?)?;
        let signature = SshSig::new(self.0.public_key().into(), NAMESPACE, HashAlg::Sha512, signature)?;
        signature.to_pem(LineEnding::LF)
    }

    /// The public key as one line, for those who check.
    pub fn public_key(&self) -> Result<String, ssh_key::Error> {
        self.0.public_key().to_openssh()
    }
}

/// The keys whose signature is trusted.
#[derive(Clone, Debug)]
pub struct TrustedKeys(Vec<PublicKey>);

impl TrustedKeys {
    /// Reads public keys, one a line, as in files with the ending `.pub`. Empty lines and comments (`#`) are skipped.
    pub fn parse(text: &str) -> Result<Self, UnusableKey> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let keys: Vec<_> =
            lines.map(PublicKey::from_openssh).collect::<Result<_, _>>().map_err(UnusableKey::Unreadable)?;
        if keys.is_empty() { Err(UnusableKey::None) } else { Ok(Self(keys)) }
    }

    /// Checks the text of a signature's file for a file with this hash.
    pub fn check(&self, signature: &str, file: FileHash) -> CheckResult {
        self.signer(signature, file).map_or_else(CheckResult::Failed, |key| {
            let (fingerprint, comment) = (key.fingerprint(HashAlg::Sha256), key.comment());
            CheckResult::Passed(
                format!("the file is signed by {fingerprint} {comment}").trim_end().to_owned(),
            )
        })
    }

    /// Who signed; the error says why it was none of these.
    fn signer(&self, signature: &str, file: FileHash) -> Result<&PublicKey, String> {
        let signature = SshSig::from_pem(signature)
            .map_err(|error| format!("not a signature in OpenSSH's format: {error}"))?;
        let (by, namespace) = (signature.public_key(), signature.namespace());
        let Some(key) = self.0.iter().find(|key| key.key_data() == by) else {
            return Err(format!("the file is signed by another key: {}", by.fingerprint(HashAlg::Sha256)));
        };
        if namespace != NAMESPACE {
            return Err(format!("the signature is for '{namespace}', not for '{NAMESPACE}'"));
        }
        if signature.hash_alg() != HashAlg::Sha512 {
            return Err(format!("the signature is over {}; only sha512 is supported", signature.hash_alg()));
        }
        let data = signed_data(file).map_err(|error| error.to_string())?;
        key.key_data().verify(&data, signature.signature()).map_err(|error| match by.algorithm() {
            Algorithm::Ed25519 | Algorithm::SkEd25519 => {
                "the file was changed after it was signed, or the signature was".to_owned()
            }
            _ => format!("the signature can't be checked: {error}"),
        })?;
        Ok(key)
    }
}

/// What a key signs for a file with this hash. The library takes files from memory only, and a ledger may not fit: so it
/// gets an empty file, whose hash, which comes last, is replaced.
fn signed_data(file: FileHash) -> Result<Vec<u8>, ssh_key::Error> {
    let mut data = SshSig::signed_data(NAMESPACE, HashAlg::Sha512, &[])?;
    data.truncate(data.len() - file.len());
    data.extend(file);
    Ok(data)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ssh_key::private::Ed25519Keypair;

    use super::*;

    fn key(seed: u8) -> PrivateKey {
        PrivateKey::new(Ed25519Keypair::from_seed(&[seed; 32]).into(), "me@home").expect("a key")
    }

    fn signing(key: &PrivateKey) -> SigningKey {
        SigningKey::parse(&key.to_openssh(LineEnding::LF).expect("text")).expect("a key")
    }

    fn trusted(keys: &[&PrivateKey]) -> TrustedKeys {
        let lines: Vec<_> = keys.iter().map(|key| signing(key).public_key().expect("text")).collect();
        TrustedKeys::parse(&lines.join("\n")).expect("keys")
    }

    fn hash(mut bytes: &[u8]) -> FileHash {
        let mut file = Hashed::new(Vec::new());
        // In pieces, as files come.
        io::copy(&mut (&mut bytes).take(3), &mut file)
            .and_then(|_| io::copy(&mut bytes, &mut file))
            .expect("to memory");
        let (written, copy) = file.finish();
        let mut file = Hashed::new(&*copy);
        io::copy(&mut file, &mut io::sink()).expect("from memory");
        assert_eq!(file.finish().0, written);
        written
    }

    fn refusal(keys: &TrustedKeys, signature: &str, file: &[u8]) -> String {
        match keys.check(signature, hash(file)) {
            CheckResult::Failed(why) => why,
            other => panic!("{other:?}"),
        }
    }

    proptest! {
        // Slow where this code is not optimised.
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn a_signature_is_the_library_s_of_the_whole_file(file: Vec<u8>) {
            let key = key(1);
            let signature = signing(&key).sign(hash(&file)).expect("signed");
            let expected = key.sign(NAMESPACE, HashAlg::Sha512, &file).expect("signed");
            prop_assert_eq!(&signature, &expected.to_pem(LineEnding::LF).expect("text"));
            let passed = matches!(trusted(&[&key]).check(&signature, hash(&file)), CheckResult::Passed(_));
            prop_assert!(passed);
        }

        #[test]
        fn a_changed_byte_is_found(file in prop::collection::vec(any::<u8>(), 1..200), at: prop::sample::Index, by in 1..=255_u8) {
            let key = key(1);
            let signature = signing(&key).sign(hash(&file)).expect("signed");
            let mut changed = file;
            *at.get_mut(&mut changed) ^= by;
            let why = refusal(&trusted(&[&key]), &signature, &changed);
            prop_assert_eq!(why, "the file was changed after it was signed, or the signature was");
        }
    }

    #[test]
    fn the_signer_is_told_and_no_other_passes() {
        let [ours, other] = [key(1), key(2)];
        let signature = signing(&ours).sign(hash(b"ledger")).expect("signed");
        let fingerprint = ours.fingerprint(HashAlg::Sha256);
        assert_eq!(
            trusted(&[&other, &ours]).check(&signature, hash(b"ledger")),
            CheckResult::Passed(format!("the file is signed by {fingerprint} me@home"))
        );
        assert_eq!(
            refusal(&trusted(&[&other]), &signature, b"ledger"),
            format!("the file is signed by another key: {fingerprint}")
        );
        // Another's signature under our name.
        let forged = other.sign(NAMESPACE, HashAlg::Sha512, b"ledger").expect("signed");
        let forged =
            SshSig::new(ours.public_key().into(), NAMESPACE, HashAlg::Sha512, forged.signature().clone());
        let forged = forged.and_then(|forged| forged.to_pem(LineEnding::LF)).expect("text");
        assert_eq!(
            refusal(&trusted(&[&ours]), &forged, b"ledger"),
            "the file was changed after it was signed, or the signature was"
        );
    }

    #[test]
    fn a_signature_for_something_else_does_not_pass() {
        let key = key(1);
        let by = |namespace, hash| {
            let signature = key.sign(namespace, hash, b"ledger").expect("signed");
            refusal(&trusted(&[&key]), &signature.to_pem(LineEnding::LF).expect("text"), b"ledger")
        };
        assert_eq!(by("file", HashAlg::Sha512), "the signature is for 'file', not for 'nqueens-ledger'");
        assert_eq!(by(NAMESPACE, HashAlg::Sha256), "the signature is over sha256; only sha512 is supported");
        let none = refusal(&trusted(&[&key]), "signed, me", b"ledger");
        assert!(none.starts_with("not a signature in OpenSSH's format: "), "{none}");
    }

    #[test]
    fn files_without_a_key_are_refused() {
        assert!(matches!(SigningKey::parse("secret"), Err(UnusableKey::Unreadable(_))));
        assert_eq!(TrustedKeys::parse("# nobody\n\n").map(|_| ()), Err(UnusableKey::None));
        assert!(matches!(TrustedKeys::parse("me ssh-ed25519"), Err(UnusableKey::Unreadable(_))));
    }
}
