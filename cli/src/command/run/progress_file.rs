//! The file that keeps the progress of a variant: what is counted, then a line for each piece that was.
//!
//! Lines are chained by hashes as in an exported ledger, so a file that was changed is told. It is no database of runs, and
//! no command takes one for the other.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use nqueens_evidence::chain::{ChainReader, ChainWriter};
use nqueens_kernel::engine::Tally;
use nqueens_kernel::variant::Variant;
use serde::{Deserialize, Serialize};

use crate::build::BUILD;
use crate::command::variant::describe;

/// Version of the format.
const FORMAT: u32 = 1;

/// What every file begins with.
const BEGINNING: &[u8] = b"{\"line\":\"variant\",";

/// Lines are on the disk after so much time, and when the file is closed. What a crash of the machine takes is counted again.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// A line, by what it is.
#[derive(Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "lowercase", deny_unknown_fields)]
enum Line {
    /// The first. Numbers that can outgrow 2^53 are text.
    Variant {
        format: u32,
        n: u32,
        /// `torus`, or the rows of the board from the top.
        what: Vec<String>,
        states_per_piece: String,
        pieces: usize,
        /// Of the plan and its pieces.
        fingerprint: String,
        build: String,
    },
    /// One for each piece, in the order in which they were counted.
    Piece { number: usize, solutions: String, states: String },
}

/// What the first line says of the pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) states_per_piece: u64,
    pub(super) pieces: usize,
    pub(super) fingerprint: String,
}

/// The open file. Nobody else has it.
pub(super) struct ProgressFile {
    out: ChainWriter<File>,
    synced: Instant,
    /// How the pieces were cut; `None` in a new file.
    pub(super) cut: Option<Cut>,
    /// What was counted of each piece, by its number.
    pub(super) done: BTreeMap<usize, Tally>,
}

impl ProgressFile {
    /// Opens the file of a variant, or creates it.
    pub(super) fn open(path: &Path, variant: &Variant) -> anyhow::Result<Self> {
        let shown = path.display();
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            bail!("{shown} is not a file");
        }
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(path).with_context(|| shown.to_string())?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                anyhow!(
                    "another nqueens process is using {shown}; wait for it or stop it, or choose another --db"
                )
            }
            TryLockError::Error(error) => anyhow!(error).context(shown.to_string()),
        })?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).with_context(|| shown.to_string())?;
        let is_foreign = !bytes.starts_with(BEGINNING) && !BEGINNING.starts_with(&bytes);
        ensure!(!is_foreign, "{shown} is no progress file of a variant; choose another --db");
        // A line that was not written to its end is none.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let mut reader = ChainReader::new(&bytes[..whole]);
        let read = read(&mut reader, variant).with_context(|| shown.to_string())?;
        file.set_len(whole as u64)?;
        file.seek(SeekFrom::End(0))?;
        let out = ChainWriter::after(&reader, file);
        let (cut, done) = read.map_or((None, BTreeMap::new()), |(cut, done)| (Some(cut), done));
        Ok(Self { out, synced: Instant::now(), cut, done })
    }

    /// Writes the first line.
    pub(super) fn begin(&mut self, variant: &Variant, cut: Cut) -> anyhow::Result<()> {
        self.out.write(&Line::Variant {
            format: FORMAT,
            n: variant.n().get(),
            what: what(variant),
            states_per_piece: cut.states_per_piece.to_string(),
            pieces: cut.pieces,
            fingerprint: cut.fingerprint.clone(),
            build: BUILD.to_owned(),
        })?;
        self.cut = Some(cut);
        Ok(())
    }

    /// Keeps what was counted of a piece.
    pub(super) fn add(&mut self, number: usize, tally: Tally) -> anyhow::Result<()> {
        let (solutions, states) = (tally.completions.to_string(), tally.states.to_string());
        self.out.write(&Line::Piece { number, solutions, states })?;
        self.done.insert(number, tally);
        if self.synced.elapsed() > SYNC_EVERY {
            self.sync()?;
        }
        Ok(())
    }

    /// Waits until all is on the disk.
    pub(super) fn sync(&mut self) -> anyhow::Result<()> {
        self.out.get_ref().sync_data()?;
        self.synced = Instant::now();
        Ok(())
    }
}

/// How a file says what is counted.
fn what(variant: &Variant) -> Vec<String> {
    match variant {
        Variant::Torus(_) => vec!["torus".to_owned()],
        Variant::Cells(cells) => cells.to_string().lines().map(str::to_owned).collect(),
    }
}

/// Reads a file of this variant from its first line to its last; `None` if it is empty.
fn read(
    lines: &mut ChainReader<&[u8]>,
    variant: &Variant,
) -> anyhow::Result<Option<(Cut, BTreeMap<usize, Tally>)>> {
    let Some(cut) = next(lines)? else { return Ok(None) };
    let Line::Variant { format, n, what: found, states_per_piece, pieces, fingerprint, .. } = cut else {
        bail!("damaged: it begins with a piece");
    };
    ensure!(format == FORMAT, "format version {format} is not known here, {FORMAT} is");
    let is_same = n == variant.n().get() && found == what(variant);
    ensure!(is_same, "it holds another variant than {}; choose another --db", describe(variant));
    let cut = Cut { states_per_piece: states_per_piece.parse()?, pieces, fingerprint };
    let mut done = BTreeMap::new();
    while let Some(line) = next(lines)? {
        let Line::Piece { number, solutions, states } = line else {
            bail!("damaged: it has two first lines")
        };
        let tally = Tally { completions: solutions.parse()?, states: states.parse()? };
        let is_new = number < pieces && done.insert(number, tally).is_none();
        ensure!(is_new, "damaged: line {} has piece {number} again, or there is none", lines.lines());
    }
    Ok(Some((cut, done)))
}

fn next(lines: &mut ChainReader<&[u8]>) -> anyhow::Result<Option<Line>> {
    let line = lines.next_line()?.map_err(|what| anyhow!("damaged: {what}"))?;
    if let Some(line) = lines.broken().first() {
        bail!("damaged: the hash does not fit on line {line}");
    }
    line.map(|line| serde_json::from_str(&line).with_context(|| format!("line {}", lines.lines())))
        .transpose()
}
