//! Who else can write or read a file.

use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use anyhow::bail;
use rustix::process::geteuid;
use tracing::warn;

const ROOT: u32 = 0;

const WRITABLE_BY_OTHERS: u32 = 0o022;
const ACCESSIBLE_TO_GROUP: u32 = 0o070;
const ACCESSIBLE_TO_ALL: u32 = 0o007;

/// A file is not read beyond this size.
const BYTES_MAX: u64 = 1 << 20;

/// Why somebody else may have written this file, if that is so, and what to do: whoever can write it directs the program.
fn distrust(path: &Path, file: &Metadata) -> Option<String> {
    let is_trusted = |owner| [ROOT, geteuid().as_raw()].contains(&owner);
    if path.symlink_metadata().is_ok_and(|link| link.is_symlink() && !is_trusted(link.uid())) {
        return Some("it is a link of another account".to_owned());
    }
    let (path, own) = (path.display(), geteuid().as_raw());
    // /dev/null is everybody's to write.
    if file.file_type().is_char_device() {
        None
    } else if !is_trusted(file.uid()) {
        let owner = file.uid();
        Some(format!("it belongs to user {owner}, neither to root nor to you; run 'chown {own} {path}'"))
    } else if file.mode() & WRITABLE_BY_OTHERS != 0 {
        Some(format!("other users can write it; run 'chmod go-w {path}'"))
    } else {
        None
    }
}

/// Reads a file with a secret, unless somebody else may have written it. Warns if others can read it.
pub(crate) fn read_secret(path: &Path) -> anyhow::Result<Vec<u8>> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    if let Some(reason) = distrust(path, &about) {
        bail!("it is not used: {reason}");
    }
    warn_of_readers(path, &about);
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The group may read a secret, if the file is root's: so one file serves a service and nobody else (as `PostgreSQL` has it for
/// keys).
fn warn_of_readers(path: &Path, file: &Metadata) {
    let (others, remedy) = if file.uid() == ROOT {
        (ACCESSIBLE_TO_ALL, "chmod o=")
    } else {
        (ACCESSIBLE_TO_GROUP | ACCESSIBLE_TO_ALL, "chmod go=")
    };
    if file.mode() & others != 0 {
        let path = path.display();
        warn!("other users can read the secret in {path}; run '{remedy} {path}'");
    }
}
