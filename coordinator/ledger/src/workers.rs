//! Coordinator and worker processes.

use nqueens_model::credential::Credential;
use nqueens_model::id::Incarnation;
use nqueens_model::kernel::{Capability, KernelName};
use nqueens_model::message::{Registration, Session};
use nqueens_model::operator::WallTime;
use sqlx::sqlite::{SqliteConnection, SqlitePool};
use sqlx::{query, query_scalar};

use crate::error::{Error, damaged};
use crate::{column, credential, parsed, within, worker_id};

/// Records this life of the coordinator, the newest from now on.
pub async fn insert_incarnation(
    db: &mut SqliteConnection,
    incarnation: Incarnation,
    build: &str,
    now: WallTime,
) -> Result<(), Error> {
    let number = column(incarnation.get());
    query!(
        "INSERT INTO coordinator (incarnation, build, started_at, life)
         SELECT ?, ?, ?, 1 + ifnull(max(life), 0) FROM coordinator",
        number,
        build,
        now
    )
    .execute(db)
    .await?;
    Ok(())
}

/// The key of the database: these bytes, if it has none.
pub async fn key(db: &mut SqliteConnection, random: [u8; 32]) -> Result<[u8; 32], Error> {
    let new = random.to_vec();
    query!("INSERT INTO secret (id, key) VALUES (1, ?) ON CONFLICT DO NOTHING", new)
        .execute(&mut *db)
        .await?;
    let key = query_scalar!("SELECT key FROM secret").fetch_one(db).await?;
    key.try_into().map_err(|_| damaged("secret.key has not 32 bytes"))
}

/// The latest time in the ledger; 0 if there is none.
pub async fn latest_time(db: &mut SqliteConnection) -> Result<WallTime, Error> {
    let latest = query_scalar!(
        r#"SELECT max(at) AS "at: i64" FROM (
               SELECT max(started_at) AS at FROM coordinator UNION ALL
               SELECT max(max(created_at), max(coalesce(started_at, 0)), max(coalesce(finished_at, 0))) FROM run UNION ALL
               SELECT * FROM (SELECT registered_at FROM worker ORDER BY id DESC LIMIT 1) UNION ALL
               SELECT max(at) FROM event UNION ALL
               SELECT * FROM (SELECT reported_at FROM result ORDER BY id DESC LIMIT 1))"#
    );
    Ok(latest.fetch_one(db).await?.unwrap_or(0))
}

/// The newest life of a coordinator: the only one that may write.
pub async fn newest_incarnation(db: &mut SqliteConnection) -> Result<Option<Incarnation>, Error> {
    let newest = query_scalar!("SELECT incarnation FROM coordinator ORDER BY life DESC LIMIT 1");
    let number = newest.fetch_optional(db).await?;
    Ok(number.map(|number| within("incarnation", number)).transpose()?.and_then(Incarnation::new))
}

pub(super) async fn insert_worker(
    db: &mut SqliteConnection,
    session: Session,
    worker: &Registration,
    credential: &Credential,
    now: WallTime,
) -> Result<(), Error> {
    let (id, secret) = (column(session.worker.get()), session.secret.to_vec());
    let instance = worker.instance.to_vec();
    let kernels = worker.kernels.iter().map(KernelName::as_str).collect::<Vec<_>>().join(",");
    let capability = worker.capability.as_ref();
    let family = capability.map(|capability| capability.family.as_str());
    let device = capability.map(|capability| capability.device.as_str());
    let credential = credential.as_str();
    let states_per_s = capability.map(|capability| column(capability.states_per_s));
    query!(
        "INSERT INTO worker (id, instance, secret, name, credential, build, kernels, threads, registered_at, family, device,
                             states_per_s)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        id,
        instance,
        secret,
        worker.name,
        credential,
        worker.build,
        kernels,
        worker.threads,
        now,
        family,
        device,
        states_per_s
    )
    .execute(db)
    .await?;
    Ok(())
}

#[derive(Clone, Debug)]
pub struct WorkerRow {
    pub session: Session,
    pub registration: Registration,
    pub credential: Credential,
    pub registered_at: WallTime,
    /// Why its machine, or its credential, gets no more jobs.
    pub distrusted: Option<String>,
}

/// All workers that ever registered, oldest first.
pub async fn worker_rows(db: &SqlitePool) -> Result<Vec<WorkerRow>, Error> {
    let rows = query!(
        r#"SELECT id AS "id!", instance, secret, name, credential, build, kernels, threads, registered_at, family, device,
                  states_per_s, (SELECT max(distrusted) FROM machine WHERE machine.credential = worker.credential
                                 AND machine.name IN (worker.name, '')) AS "distrusted: String"
           FROM worker ORDER BY id"#
    );
    let rows = rows.fetch_all(db).await?;
    rows.into_iter()
        .map(|row| {
            let capability = match (row.family, row.device, row.states_per_s) {
                (Some(family), Some(device), Some(speed)) => Some(Capability {
                    family: parsed(&family)?,
                    device,
                    states_per_s: within("worker.states_per_s", speed)?,
                }),
                _ => None,
            };
            let registration = Registration {
                instance: row.instance.try_into().map_err(|_| damaged("worker.instance has not 16 bytes"))?,
                name: row.name,
                build: row.build,
                kernels: row.kernels.split(',').map(parsed).collect::<Result<_, _>>()?,
                capability,
                threads: within("worker.threads", row.threads)?,
            };
            let secret = row.secret.try_into().map_err(|_| damaged("worker.secret has not 16 bytes"))?;
            let session = Session { worker: worker_id(row.id)?, secret };
            let credential = credential(&row.credential)?;
            let (registered_at, distrusted) = (row.registered_at, row.distrusted);
            Ok(WorkerRow { session, registration, credential, registered_at, distrusted })
        })
        .collect()
}
