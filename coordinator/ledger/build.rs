//! Builds an empty database from the migrations, against which `query!` checks every SQL statement at compile time.

use std::path::{Path, PathBuf};

use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=../../migrations");
    let schema = PathBuf::from(std::env::var("OUT_DIR")?).join("schema.sqlite");
    if schema.exists() {
        std::fs::remove_file(&schema)?;
    }
    let pool =
        SqlitePool::connect_with(SqliteConnectOptions::new().filename(&schema).create_if_missing(true))
            .await?;
    Migrator::new(Path::new("../../migrations")).await?.run(&pool).await?;
    pool.close().await;
    println!("cargo::rustc-env=DATABASE_URL=sqlite://{}", schema.display());
    Ok(())
}
