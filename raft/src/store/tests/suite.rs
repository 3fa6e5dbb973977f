//! openraft's own suite for stores.

use openraft::StorageError;
use openraft::testing::log::{StoreBuilder, Suite};
use tempfile::TempDir;

use super::Stores;
use crate::machine::Machine;
use crate::store::log::LogStore;
use crate::types::TypeConfig;

struct Builder;

impl StoreBuilder<TypeConfig, LogStore, Machine, TempDir> for Builder {
    async fn build(&self) -> Result<(TempDir, LogStore, Machine), StorageError<TypeConfig>> {
        let data = tempfile::tempdir().unwrap();
        let stores = Stores::open(data.path()).unwrap();
        Ok((data, stores.log, stores.machine))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stores_pass_openrafts_suite() {
    Suite::test_all(Builder).await.unwrap();
}
