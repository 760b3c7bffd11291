//! Errors of a ledger, each with advice.

use std::path::{Path, PathBuf};

/// A failure of the ledger. Nothing was changed unless the text says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no database at {0}; check the path, or start a run to create one")]
    NoDatabase(PathBuf),
    #[error("can't open the database {0}: {1}; check that the directory exists and is writable")]
    CantOpen(PathBuf, String),
    #[error("{0} is {1}, not a database file; choose another --db")]
    NotAFile(PathBuf, &'static str),
    #[error("the database {0} is not used: {1}")]
    Unsafe(PathBuf, String),
    #[error("{0} is not an SQLite database; it was left as it is, choose another --db")]
    NotADatabase(PathBuf),
    #[error("{0} is not a database of this program; it was left as it is, choose another --db")]
    ForeignDatabase(PathBuf),
    #[error(
        "{path} has schema {found}, newer than this program's {known}; use the nqueens that made it, or a later one"
    )]
    NewerSchema { path: PathBuf, found: i64, known: i64 },
    /// Made by an earlier version, or not made to the end.
    #[error(
        "{path} has schema {found}, older than this program's {known}; 'nqueens run' brings it up to date"
    )]
    OlderSchema {
        path: PathBuf,
        /// Its schema version; 0 before there are any tables.
        found: i64,
        known: i64,
    },
    #[error("another nqueens process is using {0}; wait for it or stop it, or choose another --db")]
    InUse(PathBuf),
    #[error(
        "another nqueens process has taken over {0}, so this one stores nothing more and ends; everything acknowledged so \
         far is safe; run one coordinator on a database"
    )]
    Superseded(PathBuf),
    #[error(
        "{0} was moved, removed or replaced while in use, so this process stores nothing more and ends; stop a \
         coordinator before you move or restore its database"
    )]
    Replaced(PathBuf),
    #[error("{0} exists; a backup replaces nothing, choose another name for it")]
    BackupExists(PathBuf),
    #[error(
        "the disk with {0} is full; free some space and start again, everything acknowledged so far is safe"
    )]
    DiskFull(PathBuf),
    /// Reading or writing failed below SQLite: a broken disk, a quota, a limit on the size of files.
    #[error(
        "{0} can't be read or written ({1}); check the disk and its quota and start again, everything acknowledged so \
         far is safe"
    )]
    DiskFailed(PathBuf, String),
    /// Rows that no version of this program writes.
    #[error("the database is damaged: {0}; restore it from a backup")]
    Damaged(String),
    #[error("the database failed: {0}")]
    Database(sqlx::Error),
}

/// Not its source, for it is told in full: a chain of causes would say it twice.
impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl Error {
    /// Gives an error of SQLite on this database the words that help.
    #[must_use]
    pub fn explain(self, path: &Path) -> Self {
        match self {
            Self::Database(error) => storage_error(path, error),
            other => other,
        }
    }
}

/// What a failure of SQLite on this database means.
pub fn storage_error(path: &Path, error: sqlx::Error) -> Error {
    let path = path.to_owned();
    // Text that is none, say: nothing that SQLite would mind.
    if matches!(error, sqlx::Error::ColumnDecode { .. }) {
        return Error::Damaged(format!("{}: {error}", path.display()));
    }
    let Some(database) = error.as_database_error() else { return Error::Database(error) };
    // SQLite's primary result codes; the higher bits are details.
    let code = database.code().and_then(|code| code.parse::<u32>().ok()).map(|code| code & 0xff);
    match code {
        Some(3 | 8 | 14) => Error::CantOpen(path, database.message().to_owned()),
        Some(10) => Error::DiskFailed(path, database.message().to_owned()),
        Some(11) => {
            // Where the schema is damaged, the text goes on with many lines of it.
            let reason = database.message().lines().next().unwrap_or_default();
            Error::Damaged(format!("{}: {reason}", path.display()))
        }
        Some(26) => Error::NotADatabase(path),
        Some(13) => Error::DiskFull(path),
        Some(5 | 6) => Error::InUse(path),
        _ => Error::Database(error),
    }
}

/// Rows that no version of this program writes.
pub fn damaged(what: impl ToString) -> Error {
    Error::Damaged(what.to_string())
}
