//! The SQLite file: creates, recognises, migrates, opens and closes it.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Access, access};
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqlitePool, SqlitePoolOptions};
use sqlx::{ConnectOptions, Connection, Executor, Sqlite, Transaction, query_scalar};
use tokio::time::timeout;

use crate::error::{Error, damaged, storage_error};
use crate::lock::{Lock, refuse_special};

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations");

/// Marks a file as ours: `NQns` in SQLite's application id.
const APPLICATION_ID: i32 = i32::from_be_bytes(*b"NQns");

/// Jobs leave in random order, so that nearly each touches a page of its own: 64 MB of pages are kept in memory, and 32 MB of
/// them gather in the log before they move to the database.
const SETTINGS: &str = "PRAGMA journal_mode = WAL; PRAGMA cache_size = -65536;
                        PRAGMA wal_autocheckpoint = 8192;";

/// A commit is on the disk when it returns, with all before it: it survives a power cut.
const DURABLE: &str = "PRAGMA synchronous = FULL";

/// A commit survives the death of the process, and is on the disk with the next [`sync`](Database::sync).
const SWIFT: &str = "PRAGMA synchronous = NORMAL";

/// Connections that read; one where nobody but this process asks.
const READERS: u32 = 4;

/// Rows on their way from SQLite's thread to the reader's: with few the two would wait for each other all the time.
const ROWS_WAITING: usize = 1_024;

/// Time for a reader to end what it is at, when the database closes; it changes nothing, so it can be left alone.
const READERS_END: Duration = Duration::from_secs(1);

/// What is only in the log is no older.
const CHECKPOINT_EVERY: Duration = Duration::from_mins(5);

/// A database that this process alone may write, with the lock that says so.
pub struct Database {
    pub path: PathBuf,
    pub writer: SqliteConnection,
    pub readers: SqlitePool,
    lock: Lock,
    checkpoint_at: Instant,
    sync_every: Duration,
    synced: Instant,
    /// Changes by the writing connection when the log was brought to the disk; `None` if it is not known.
    changes_synced: Option<i64>,
}

impl Database {
    /// Opens a database to write to it; creates and migrates it where needed. A power cut may cost the commits of the last
    /// `sync_every`; none if that is zero.
    pub async fn open(path: &Path, sync_every: Duration) -> Result<Self, Error> {
        let mut lock = Lock::take(path)?;
        let found = if lock.is_empty()? { 0 } else { recognise(path).await? };
        let fail = |error| storage_error(path, error);
        let mut writer = connect_writer(path, sync_every).await?;
        if found == 0 {
            let mark = format!("PRAGMA application_id = {APPLICATION_ID}");
            writer.execute(sqlx::AssertSqlSafe(mark)).await.map_err(fail)?;
        }
        MIGRATIONS.run(&mut writer).await.map_err(|error| migrate_error(path, error))?;
        // All of them now: one that opens a file moved here later would play this database's log back into it.
        let readers = if sync_every.is_zero() { READERS } else { 1 };
        let readers = connect_readers(path, readers..=readers).await?;
        lock.take_log()?;
        let now = Instant::now();
        let path = path.to_owned();
        Ok(Self {
            path,
            writer,
            readers,
            lock,
            checkpoint_at: now + CHECKPOINT_EVERY,
            sync_every,
            synced: now,
            changes_synced: None,
        })
    }

    /// Begins to write, if the path still leads to the file that is locked.
    pub async fn begin(&mut self) -> Result<Transaction<'_, Sqlite>, Error> {
        self.lock.check()?;
        Ok(self.writer.begin_with("BEGIN IMMEDIATE").await?)
    }

    /// After a commit: brings what was committed to the disk if that is due, and true if there was something to bring. SQLite
    /// itself would do so at the next commit that changes anything, which may come much later.
    pub async fn sync(&mut self) -> Result<bool, Error> {
        if self.sync_every.is_zero() || self.synced.elapsed() < self.sync_every {
            return Ok(false);
        }
        let changes = Some(query_scalar("SELECT total_changes()").fetch_one(&mut self.writer).await?);
        let is_behind = changes != self.changes_synced;
        if is_behind {
            self.lock.sync_log().await?;
            (self.synced, self.changes_synced) = (Instant::now(), changes);
        }
        Ok(is_behind)
    }

    /// Moves what was committed from the log into the file, for those who copy the file alone: after a milestone, with the
    /// commits that go to the disk together, and every few minutes. What a reader still needs stays in the log till the next time.
    pub async fn checkpoint(&mut self, is_milestone: bool) -> Result<(), Error> {
        let now = Instant::now();
        if is_milestone {
            self.checkpoint_at = self.checkpoint_at.min(now + self.sync_every);
        }
        if now >= self.checkpoint_at {
            self.checkpoint_at = now + CHECKPOINT_EVERY;
            self.writer.execute("PRAGMA wal_checkpoint(PASSIVE)").await?;
        }
        Ok(())
    }

    /// Closes it, and lets another process have it.
    pub async fn close(self) -> Result<(), Error> {
        let Self { path, mut writer, readers, lock, .. } = self;
        let fail = |error| storage_error(&path, error);
        let is_read_out = timeout(READERS_END, readers.close()).await.is_ok();
        if lock.check().is_err() && lock.owns_log() {
            // SQLite leaves the log of a file that was moved as it is, and would play it back into the next of its name.
            writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").await.map_err(fail)?;
        }
        writer.close().await.map_err(fail)?;
        if is_read_out {
            lock.release();
        }
        Ok(())
    }

    /// Takes a new connection to write by. After a transaction that SQLite itself has rolled back, as it does on a full
    /// disk, the old one takes itself to be in that transaction for ever.
    pub async fn reconnect(&mut self) -> Result<(), Error> {
        self.lock.check()?;
        let old = std::mem::replace(&mut self.writer, connect_writer(&self.path, self.sync_every).await?);
        self.changes_synced = None;
        old.close().await.map_err(|error| storage_error(&self.path, error))
    }
}

/// Opens a database to read it, while another process may be writing to it.
///
/// The connections themselves refuse changes. The file is not opened as read-only: the last connection that closes a
/// database removes the files beside it (`-wal`, `-shm`), which needs write access.
pub async fn open_readers(path: &Path) -> Result<SqlitePool, Error> {
    match path.try_exists() {
        Ok(true) => refuse_special(path)?,
        Ok(false) => return Err(Error::NoDatabase(path.to_owned())),
        Err(error) => return Err(Error::CantOpen(path.to_owned(), error.to_string())),
    }
    let (found, known) = (recognise(path).await?, newest_schema());
    if found < known {
        return Err(Error::OlderSchema { path: path.to_owned(), found, known });
    }
    connect_readers(path, 0..=READERS).await
}

async fn connect_writer(path: &Path, sync_every: Duration) -> Result<SqliteConnection, Error> {
    let connecting = async {
        let mut writer = SqliteConnection::connect_with(&options(path)).await?;
        writer.execute(if sync_every.is_zero() { DURABLE } else { SWIFT }).await?;
        writer.execute(SETTINGS).await?;
        Ok(writer)
    };
    connecting.await.map_err(|error| storage_error(path, error))
}

async fn connect_readers(path: &Path, connections: RangeInclusive<u32>) -> Result<SqlitePool, Error> {
    let pool = SqlitePoolOptions::new()
        .min_connections(*connections.start())
        .max_connections(*connections.end())
        .max_lifetime(None)
        .idle_timeout(None)
        // A starved machine may take minutes. Callers have limits of their own.
        .acquire_timeout(Duration::from_mins(10));
    pool.connect_with(options(path).pragma("query_only", "ON"))
        .await
        .map_err(|error| storage_error(path, error))
}

/// Statements over a whole ledger may take their time: that is no news for the log.
pub fn options(path: &Path) -> SqliteConnectOptions {
    let options = SqliteConnectOptions::new().filename(path).foreign_keys(true).immutable(is_archived(path));
    options.busy_timeout(Duration::from_secs(10)).row_buffer_size(ROWS_WAITING).disable_statement_logging()
}

/// Whether a database is whole and nobody here can write it: SQLite reads it then without the files that it keeps beside it.
fn is_archived(path: &Path) -> bool {
    let is_writable = |path: &Path| access(path, Access::WRITE_OK).is_ok();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    path.is_file() && !Path::new(&log).exists() && !(is_writable(path) && is_writable(folder))
}

fn newest_schema() -> i64 {
    MIGRATIONS.iter().map(|step| step.version).max().unwrap_or(0)
}

/// Makes sure that a file is one of our databases, of a schema that we know, without changing it. Returns its schema
/// version, 0 if it has no tables yet.
async fn recognise(path: &Path) -> Result<i64, Error> {
    // SQLite takes what is shorter than its smallest page for a database yet to be written.
    if path.metadata().is_ok_and(|file| (1..512).contains(&file.len())) {
        return Err(Error::NotADatabase(path.to_owned()));
    }
    let fail = |error| storage_error(path, error);
    let mut connection =
        SqliteConnection::connect_with(&options(path).read_only(true)).await.map_err(fail)?;
    let id: i32 = query_scalar("PRAGMA application_id").fetch_one(&mut connection).await.map_err(fail)?;
    let schema: Vec<Option<Vec<u8>>> = query_scalar("SELECT CAST(sql AS BLOB) FROM sqlite_schema")
        .fetch_all(&mut connection)
        .await
        .map_err(fail)?;
    // The driver takes the names and types of columns for text.
    if schema.iter().flatten().any(|sql| std::str::from_utf8(sql).is_err()) {
        return Err(damaged("the schema is no text"));
    }
    // One without a mark and without tables is one of ours whose creation was cut short, or nobody's.
    if id != APPLICATION_ID && !(id == 0 && schema.is_empty()) {
        return Err(Error::ForeignDatabase(path.to_owned()));
    }
    let found: Option<i64> = query_scalar("SELECT max(version) FROM _sqlx_migrations")
        .fetch_one(&mut connection)
        .await
        .unwrap_or(None);
    connection.close().await.map_err(fail)?;
    let (found, known) = (found.unwrap_or(0), newest_schema());
    if found > known {
        return Err(Error::NewerSchema { path: path.to_owned(), found, known });
    }
    Ok(found)
}

fn migrate_error(path: &Path, error: MigrateError) -> Error {
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => storage_error(path, error),
        MigrateError::VersionMismatch(version) => {
            Error::Damaged(format!("schema {version} is not the one that this program knows"))
        }
        other => Error::Damaged(other.to_string()),
    }
}
