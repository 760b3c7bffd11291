//! Coordinator and worker processes.

use nqueens_kernel::engine::Kernel;
use nqueens_model::id::{Incarnation, WorkerId};
use nqueens_model::message::Registration;
use nqueens_model::operator::WallTime;
use sqlx::query;
use sqlx::sqlite::{SqliteConnection, SqlitePool};

use super::{column, within, worker_id};
use crate::error::{Error, damaged};

/// Records this life of the coordinator.
pub(crate) async fn insert_incarnation(
    db: &mut SqliteConnection,
    incarnation: Incarnation,
    build: &str,
    now: WallTime,
) -> Result<(), Error> {
    let number = column(incarnation.get());
    query!("INSERT INTO coordinator (incarnation, build, started_at) VALUES (?, ?, ?)", number, build, now)
        .execute(db)
        .await?;
    Ok(())
}

/// Writes a worker's process that has registered.
pub(super) async fn insert_worker(
    db: &mut SqliteConnection,
    id: WorkerId,
    worker: &Registration,
    now: WallTime,
) -> Result<(), Error> {
    let (id, instance) = (column(id.get()), worker.instance.to_vec());
    let kernels = worker.kernels.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    query!(
        "INSERT INTO worker (id, instance, name, build, kernels, threads, registered_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
        id,
        instance,
        worker.name,
        worker.build,
        kernels,
        worker.threads,
        now
    )
    .execute(db)
    .await?;
    Ok(())
}

/// A worker as it registered.
#[derive(Clone, Debug)]
pub struct WorkerRow {
    /// Its name in the ledger.
    pub id: WorkerId,
    /// What its owner calls it.
    pub name: String,
    /// Program version and source revision.
    pub build: String,
    /// Its engines, the one in use first, separated by commas.
    pub kernels: String,
    /// Its counting threads.
    pub threads: u32,
    /// When it registered.
    pub registered_at: WallTime,
    /// Drawn at random by its process.
    pub(crate) instance: [u8; 16],
}

impl WorkerRow {
    /// The engine that it counts with: the first of those that it offers.
    pub fn kernel(&self) -> Kernel {
        self.kernels.split(',').next().and_then(|name| name.parse().ok()).unwrap_or(Kernel::Reference)
    }
}

/// All workers that ever registered, oldest first.
pub(crate) async fn worker_rows(db: &SqlitePool) -> Result<Vec<WorkerRow>, Error> {
    let rows =
        query!("SELECT id, instance, name, build, kernels, threads, registered_at FROM worker ORDER BY id");
    let rows = rows.fetch_all(db).await?;
    rows.into_iter()
        .map(|row| {
            Ok(WorkerRow {
                id: worker_id(row.id)?,
                name: row.name,
                build: row.build,
                kernels: row.kernels,
                threads: within("worker.threads", row.threads)?,
                registered_at: row.registered_at,
                instance: row.instance.try_into().map_err(|_| damaged("worker.instance has not 16 bytes"))?,
            })
        })
        .collect()
}
